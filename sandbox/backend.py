"""The narrow door that every provider fits: open a chamber, run one bundle in it, get bytes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from sandbox.bundle import Bundle
from sandbox.errors import Refused
from sandbox.incoming import Incoming
from sandbox.job import Enforcer, Job, Mode, Outcome
from sandbox.price import Bill
from sandbox.wire.frames import Reply
from sandbox.wire.log import Report


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do, and who holds each limit there.

    `caveats` are sentences that people must be told where this backend is used: what is weaker here than elsewhere.
    """

    boundary: str
    relay: bool
    live_log: bool
    stop: bool
    enforced: Mapping[str, Enforcer] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    def enforcer(self, limit: str) -> Enforcer:
        return self.enforced.get(limit, Enforcer.NOBODY)

    def admit(self, job: Job) -> None:
        """Refuse a job that needs more than this backend can give."""
        wants = (
            ("relay", job.mode is Mode.RELAY),
            ("live log", job.needs.live_log),
            ("stop", job.needs.stop),
        )
        has = {"relay": self.relay, "live log": self.live_log, "stop": self.stop}
        for name, wanted in wants:
            if wanted and not has[name]:
                raise Refused(f"this backend ({self.boundary}) has no {name}, which the job needs")
        if job.mode is Mode.RELAY and job.needs.stop:
            raise Refused("a relay job has no grace, its stdin carries frames; leave needs.stop out")
        for limit, least in job.needs.enforced.items():
            if not self.enforcer(limit).meets(least):
                raise Refused(
                    f"on this backend ({self.boundary}) {self.enforcer(limit)} enforces {limit}, "
                    f"but the job accepts no less than {least}"
                )


class Listener(Protocol):
    """Hears a chamber while it runs. Lines are escaped; both are the candidate's own words."""

    def line(self, text: str) -> None: ...

    def report(self, report: Report) -> None: ...


class Channel(Protocol):
    """Calls into a chamber in relay mode, one at a time."""

    async def call(self, payload: bytes, timeout: float) -> Reply: ...

    async def processor_seconds(self) -> float | None:
        """What the whole chamber has used of the processors so far, measured outside; None where nobody can tell."""


@runtime_checkable
class Forwarding(Channel, Protocol):
    """A channel that also hands on what is not whole yet, to another of its kind."""

    async def call_ahead(self, payload: bytes, timeout: float, kind: bytes) -> Reply | Incoming:
        """As `call`; a large reply whose first byte is `kind` is given as soon as it begins."""

    async def forward(self, payload: Incoming, timeout: float) -> Reply:
        """As `call`, with what is still on its way. What was waited for it is not in the reply's time."""


Talk = Callable[[Channel], Awaitable[None]]


class Chamber(Protocol):
    """A fresh container, used once. Leaving the context ends it, whatever happened."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Hardware and posture as seen inside, said before any hostile byte arrived."""

    @property
    def bill(self) -> Bill:
        """What it has cost; to be asked once it is over, however it ended."""

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        """Deliver the bundle, run it, take back bytes. Once only.

        Raises Unavailable when the provider fails, Refused when the bundle breaks our own limits, and
        Lost when somebody else took the chamber away.
        """

    async def stop(self) -> None:
        """Ask for an early end: SIGTERM, grace, then the partial outputs. Harmless when over."""

    async def kill(self) -> None:
        """End it now. Harmless when over."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class Answering(Protocol):
    """A backend that can be asked whether its provider is there at all."""

    async def answers(self) -> None:
        """Raises Unavailable when it is not. Starts nothing, costs nothing, and has to do with no chamber."""


@runtime_checkable
class Recalling(Protocol):
    """A backend whose provider can tell later how long something lived whose end we did not see."""

    @property
    def registry(self) -> str:
        """The provider's list in which its things stand: another list cannot tell of them."""

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        """Seconds that the provider charges for, of those among these names that it says are over.

        The values are when we gave each of them up, in seconds since 1970. Raises Unavailable.
        """


class Backend(Protocol):
    """A provider of chambers."""

    capabilities: Capabilities

    async def open(self, job: Job) -> Chamber:
        """A chamber that waits for its bundle. Raises Refused or Unavailable; then nothing is left.

        Where it cost something, or an end could not be confirmed, the error says so (`usd`, `unended`). A cancelled
        open ends what it began; where that cannot be confirmed, or is known to have cost nothing, it raises such an
        error in place of the cancellation.
        """

    async def reap(self) -> list[str]:
        """End what belongs to owners whose lease ran out, never a live one's; say what was ended."""

    async def close(self) -> None:
        """End everything that this backend still holds."""
