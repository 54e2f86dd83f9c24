"""A provider's live streams, and how long we wait for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sandbox.wire.demux import Stream

# A line may be slow: outputs that keep coming get so many times the deadline, and never more than so many seconds on
# top of it. They are taken from what upload, build and run left of their own time, so nothing is set aside for them.
STEADY, STEADY_S = 4, 90.0


class Link(Protocol):
    """Live streams of PID 1. Both methods raise Unavailable when the provider is gone.

    One that knows when what it received last had come says so as `arrived`, in seconds of `time.monotonic`.
    """

    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> Iterable[tuple[Stream, memoryview]]:
        """What came next, to be taken before the next call; an empty list is the end."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for the phases that no job sets: until ready, until unpacked, until collected.

    `silence` is for how long a provider that answers nobody is waited for, before what it held is given up.
    """

    provision: float = 60.0
    upload: float = 60.0
    collect: float = 30.0
    silence: float = 180.0

    @property
    def collect_at_most(self) -> float:
        """For outputs that keep coming, where the phases before left enough of their time."""
        return min(self.collect * STEADY, self.collect + STEADY_S)

    @property
    def around(self) -> float:
        """The longest that a chamber serves besides the limits of its job."""
        return self.upload + self.collect
