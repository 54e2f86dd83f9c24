"""When a chamber was called, and when its bytes came."""

import time
from collections.abc import Callable

from sandbox.arrivals import Arrivals
from sandbox.clock.clock import Clock


class CallTimes:
    """Of one chamber's streams: its calls go `there`, its bytes come `back`. Before the first call that is timed, and
    without a clock, the thread that looks on tells when bytes came.
    """

    def __init__(self, there: int, back: int, clock: Clock | None = None) -> None:
        self._there, self._back = there, back
        self._clock = clock
        self._arrivals = Arrivals(back)
        self._number: int | None = None
        self._call = self._taken = 0
        self._came = (0, 0.0)
        self._sent: float | None = None
        self._by_clock = False
        # Told when the clock died: nobody knows whether it had sent the call that it was given.
        self.lost: Callable[[], None] = lambda: None

    @property
    def sent(self) -> float | None:
        """When the clock sent the last call; None for one that its caller sent."""
        return self._sent if self._by_clock else None

    def send(self, call: bytes) -> bool:
        """Whether the clock sends it; else the caller has to, and takes the time before."""
        self._by_clock = self._told(call)
        return self._by_clock

    def look(self) -> None:
        """What comes next answers a call that the caller sends."""
        self._by_clock = False
        self._told(b"")

    def took(self, count: int) -> float:
        """By when the bytes that were read last, so many, had all come."""
        self._taken += count
        if self._number is None:
            return self._arrivals.took(count)
        if self._clock:
            self._clock.listen()
        came, at = self._came
        return at if came >= self._taken else time.monotonic()

    def close(self) -> None:
        """Before the descriptors themselves are closed."""
        self._arrivals.close()
        if self._clock and self._number is not None:
            self._clock.drop(self._number)

    def _told(self, call: bytes) -> bool:
        if self._number is None and self._clock:
            self._number = self._clock.watch(self._there, self._back, self._heard, self._lose)
            if self._number is not None:
                self._arrivals.close()
        self._call += 1
        self._came, self._sent = (0, 0.0), None
        if self._number is None or not self._clock:
            return False
        return self._clock.send(self._number, self._call, self._taken, call)

    def _heard(self, call: int, sent: float, came: int, at: float) -> None:
        """Of bytes, the first look at the most that came."""
        if call == self._call:
            self._sent = sent
            if came > self._came[0]:
                self._came = (came, at)

    def _lose(self) -> None:
        self._clock = None
        if self._by_clock:
            self.lost()
