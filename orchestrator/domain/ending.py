"""How an attempt ends, and who pays for it. Closed: an ending that is not here cannot be recorded."""

from enum import StrEnum


class Ending(StrEnum):
    SCORED = "scored"
    BUILD_FAILED = "build failed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    INVALID = "invalid"
    TAMPERED = "tampered"
    PRUNED = "pruned"
    STALLED = "stalled"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    HELD = "held"

    @property
    def charged(self) -> bool:
        """Whether the attempt is used up. Dollars, tokens and seconds that were spent stay spent in any case."""
        return self not in _FREE

    @property
    def retryable(self) -> bool:
        return self in _RETRYABLE

    @property
    def scoreable(self) -> bool:
        """Whether there is a score at all; where there is none it is missing data, never 0.0."""
        return self is Ending.SCORED


_RETRYABLE = {Ending.STALLED, Ending.INFRASTRUCTURE, Ending.INTERRUPTED}
_FREE = {*_RETRYABLE, Ending.CANCELLED, Ending.HELD}
