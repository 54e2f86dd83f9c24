"""A clock that stands still while this process does: a suspended machine, a lid that was closed, a stop by a signal.

Whatever waits for a deadline wakes up late then, and must not take the time for somebody's silence. Told by a turn of
the event loop that comes far too late although hardly any processor time was used: a loop that is busy is no such case,
so that nobody who can keep it busy gets anything out of it.
"""

import time
from collections.abc import Callable
from functools import partial

# Far more than a turn takes, less than the deadlines that matter.
LIMIT_S = 10.0
_BUSY_PART = 0.5


# Goes on while the machine sleeps, which the monotonic clock does not; where there is no such clock, it counts.
_since_boot = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Awake:
    """Seconds in which this process was there. Means nothing before `begin`; from then on it is to be asked often.

    `held` counts the seconds in which we were there, and could begin nothing since nothing could be put on record: what
    waited for that was not silent of its own.
    """

    def __init__(
        self,
        clock: Callable[[], float] = _since_boot,
        worked: Callable[[], float] = time.process_time,
        limit_s: float = LIMIT_S,
        held: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.clock = clock
        self._worked = worked
        self.held = held
        self.limit_s = limit_s
        self._begun = False
        self._last = clock()
        self._last_worked = worked()
        self._last_held = 0.0
        self._slept = 0.0
        self._missed = 0.0

    def begin(self) -> None:
        self()
        self._begun = True

    def end(self) -> None:
        """Nobody asks often any more."""
        self._begun = False

    def __call__(self) -> float:
        now, worked, held = self.clock(), self._worked(), self.held()
        gap, used = now - self._last, worked - self._last_worked
        if self._begun and gap > self.limit_s and used < _BUSY_PART * gap:
            self._slept += gap
            self._missed += gap  # and no more than that: what was held up meanwhile stood still with us
        else:
            self._missed += held - self._last_held
        self._last, self._last_worked, self._last_held = now, worked, held
        return now - self._missed

    @property
    def slept(self) -> float:
        """All seconds in which it was not there. What lies between two looks is what was slept meanwhile."""
        self()
        return self._slept

    @property
    def missed(self) -> float:
        """All seconds in which it was not there, or could begin nothing."""
        self()
        return self._missed
