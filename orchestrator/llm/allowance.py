"""What the holder of a token may use, and what is recorded of it."""

from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Spent
from orchestrator.watch.signals import Signal


@dataclass(frozen=True)
class Allowance:
    """`expires_at` is on the gateway's own steady clock. None is no cap; the dollars are always capped.

    `begun`: it is what is left after calls of the same attempt.
    """

    role: ModelRole
    models: tuple[str, ...]
    microdollars: int
    tokens: int | None = None
    per_minute: int | None = None
    expires_at: float | None = None
    begun: bool = False


@dataclass(frozen=True)
class Call:
    """One request that is about to be forwarded. `worst` is the most that it can cost; retries are part of it."""

    id: str
    role: ModelRole
    model: str
    worst: Spent


@dataclass(frozen=True)
class Used:
    """What became of a call. `first_s` is None where no first token came."""

    ending: CallEnding
    tokens: Tokens
    spent: Spent
    first_s: float | None
    seconds: float


class Ear(Protocol):
    """The issuer of a token hears all that is done with it. Nothing here may wait, but for the disk before a call."""

    async def intended(self, call: Call) -> None:
        """Before anything is forwarded. On disk when it returns; where it raises, the call is refused."""

    def heard(self, signal: Signal) -> None:
        """Live, for the stall watch and for those who look on."""

    def ended(self, call: Call, used: Used) -> None:
        """Exactly once for every call that was intended, whatever happened to it."""
