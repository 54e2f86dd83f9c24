"""What may be spent on reading one change, over all of its files together.

Steps are counted, so the same change gets the same answer on any machine. Processor time stands behind them, for what
nobody thought of counting: past it the change is refused.
"""

import time
from collections.abc import Callable

from orchestrator.change.refusal import Reason, Refusal

STEPS = 1_000_000  # of all comparisons
FILE_STEPS = 400_000  # of one: the hardest file leaves some for the others
PLACES = 20_000_000  # lines compared while hunks are sought
SECONDS = 20.0  # of processor time, where all counts together take two or three
_EVERY = 50_000  # places between two looks at the clock


class Effort:
    """Made and used in one thread, whose processor time it counts."""

    def __init__(
        self,
        *,
        steps: int = STEPS,
        places: int = PLACES,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._steps = steps
        self._places = places
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._unchecked = 0
        self.steps_used = 0
        self.places_used = 0

    @property
    def steps_left(self) -> int:
        """For the next file."""
        return min(FILE_STEPS, self._steps - self.steps_used)

    def compared(self, steps: int) -> None:
        self.steps_used += steps
        self.check_time()

    def sought(self, lines: int) -> bool:
        """Whether there is some left to seek with."""
        self.places_used += lines
        self._unchecked += lines
        if self._unchecked > _EVERY:
            self._unchecked = 0
            self.check_time()
        return self.places_used <= self._places

    def check_time(self) -> None:
        if self._clock() - self._began > self._seconds:
            raise Refusal(Reason.TOO_COSTLY, f"to read and compare it takes more than {self._seconds:g} s of processor")
