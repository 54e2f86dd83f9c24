"""Free endings, and why there cannot be many: a candidate that profits from being run again must not be able to.

What counts as free is decided elsewhere, on evidence from outside the chamber. Here each free ending is counted twice:
against its attempt where it was a stall, and against its lineage, so that a branch cannot take turns for ever.
"""

import math
from dataclasses import dataclass

_DOUBLINGS = 60


@dataclass(frozen=True)
class Requeue:
    """Run it again, not sooner than so many seconds from now."""

    after_s: float


@dataclass(frozen=True)
class Quarantine:
    """Keep it, and run it only when a person releases it."""

    reason: str


@dataclass(frozen=True)
class Charge:
    """The ending is not free: it is settled and not run again."""


Decision = Requeue | Quarantine | Charge


@dataclass(frozen=True)
class RefundPolicy:
    """How often an attempt may stall and a lineage may end free: the last time that is allowed leads to quarantine.

    The wait before the next run doubles with each free ending, from `backoff_s` up to `backoff_cap_s`.
    """

    stalls: int = 3
    refunds_per_lineage: int = 5
    backoff_s: float = 1.0
    backoff_cap_s: float = 300.0

    def __post_init__(self) -> None:
        if self.stalls < 1 or self.refunds_per_lineage < 1:
            raise ValueError("stalls and refunds_per_lineage are counted from 1 on")
        if not 0 <= self.backoff_s <= self.backoff_cap_s < math.inf:
            raise ValueError("the back-off runs from backoff_s up to backoff_cap_s, both of them finite")

    def decide(self, *, ending_is_free: bool, stalls_of_attempt: int, refunds_of_lineage: int, draw: float) -> Decision:
        """What becomes of an attempt. Both counts include this ending; `draw` is a random number in [0, 1)."""
        if not ending_is_free:
            return Charge()
        if stalls_of_attempt >= self.stalls:
            return Quarantine(f"its stalls: {stalls_of_attempt}, with a limit of {self.stalls}")
        if refunds_of_lineage >= self.refunds_per_lineage:
            limit = self.refunds_per_lineage
            return Quarantine(f"free endings of its lineage: {refunds_of_lineage}, with a limit of {limit}")
        return Requeue(self.backoff(max(stalls_of_attempt, refunds_of_lineage), draw))

    def backoff(self, endings: int, draw: float) -> float:
        """Seconds after so many free endings: half of it is fixed, half is drawn, so that a crowd comes back spread."""
        if not 0 <= draw < 1:
            raise ValueError(f"{draw} is not in [0, 1)")
        doublings = min(max(0, endings - 1), _DOUBLINGS)
        return min(self.backoff_cap_s, self.backoff_s * 2.0**doublings) * (1 + draw) / 2
