"""What can happen in a conversation with a chamber, and the ending that each thing means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NoReturn

from sandbox.errors import Unavailable
from sandbox.job import Ending
from sandbox.wire.dialogue import Said
from sandbox.wire.faults import Fault, WireFault


class Order(Enum):
    """What we ask for."""

    STOP = auto()
    KILL = auto()


class Silence(Enum):
    """The streams ended, as they should or not."""

    END = auto()


Happening = Said | Exception | Order | Silence


@dataclass(slots=True)
class Told:
    """How the conversation ended.

    `told` is False when our own clock, counters or orders decided it. `doubtful` asks the provider to confirm that
    the program ended by its own doing: it may have run out of memory, or somebody may have taken the chamber away.
    `unheard`: nothing more was heard in time, or the streams ended, and that alone decided it. It says nothing of the
    program where the provider itself was silent meanwhile.
    """

    ending: Ending
    exit_code: int | None = None
    reason: str = ""
    told: bool = True
    doubtful: bool = False
    unheard: bool = False
    outputs: Mapping[str, bytes] = field(default_factory=dict)


class Ended(Exception):
    """Leaves the conversation with what it came to."""

    def __init__(self, told: Told) -> None:
        super().__init__(told.ending)
        self.told = told


class NotDelivered(Unavailable):
    """The chamber ended while it took the bundle: the provider's fault, unless the bundle was too much for it."""


def end_by(event: Happening) -> NoReturn:
    """Leave the conversation by what happened. A failure that is not the program's leaves as itself."""
    match event:
        case Order():
            raise Ended(Told(Ending.KILLED, reason="killed by order", told=False))
        case WireFault(fault=Fault.LOG_OVERFLOW):
            raise Ended(Told(Ending.LOG_OVERFLOW, reason=str(event), told=False))
        case WireFault(fault=Fault.ENDED_EARLY):
            raise Ended(Told(Ending.FAILED, reason=str(event), doubtful=True, unheard=True))
        case WireFault(fault=Fault.ARCHIVE_TRUNCATED):
            raise Ended(Told(Ending.OUTPUT_REFUSED, reason=str(event), told=False, doubtful=True, unheard=True))
        case WireFault() if event.fault.is_about_outputs:
            raise Ended(Told(Ending.OUTPUT_REFUSED, reason=str(event), told=False))
        case WireFault():
            late = event.fault is Fault.FRAME_LATE
            raise Ended(Told(Ending.PROTOCOL, reason=str(event), told=False, unheard=late))
        case Exception():
            raise event
        case Silence.END:
            raise Ended(Told(Ending.FAILED, reason="the chamber ended by itself", doubtful=True, unheard=True))
        case Said():
            reason = f"{event.phase.name.lower()} said out of turn"
            raise Ended(Told(Ending.PROTOCOL, reason=reason, told=False))
