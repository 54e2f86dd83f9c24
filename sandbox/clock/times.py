"""When a chamber was called, and when its bytes came."""

import time
from collections.abc import Callable

from sandbox.arrivals import Arrivals
from sandbox.clock.clock import Clock


class CallTimes:
    """Of one chamber's streams: its calls go `there`, its bytes come `back`. Before the first call that is timed, and
    without a clock, the thread that looks on tells when bytes came. After a clock that died comes the next one.
    """

    def __init__(self, there: int, back: int, clock: Clock | None = None) -> None:
        self._there, self._back = there, back
        self._clock = clock
        self.arrivals = Arrivals(back)
        self.slot: int | None = None
        self._call: int | None = None
        self._taken = 0
        self.by_clock = False
        # Told when the clock died: nobody knows whether it had sent the call that it was given.
        self.lost: Callable[[], None] = lambda: None

    @property
    def sent(self) -> float | None:
        """When the clock sent the last call; None where its caller did, or the clock has not yet."""
        said = self.said() if self.by_clock else None
        return said[0] if said else None

    def said(self) -> tuple[float, int, float] | None:
        """Of the last call, as `Clock.said`."""
        if self._clock is None or self.slot is None or self._call is None:
            return None
        return self._clock.said(self.slot, self._call)

    def send(self, call: bytes) -> bool:
        """Whether the clock sends it; else the caller has to, and takes the time before."""
        self._begin(call)
        self.by_clock = self._call is not None
        if not self.by_clock:
            self._begin(b"")  # the caller sends it; when its answer came is still for the clock to say
        return self.by_clock

    def look(self) -> None:
        """What comes next answers a call that the caller sends."""
        self._begin(b"")
        self.by_clock = False

    def took(self, count: int) -> float:
        """By when the bytes that were read last, so many, had all come."""
        self._taken += count
        if self.slot is None:
            return self.arrivals.took(count)
        if self._clock:
            self._clock.take(self.slot, self._taken)
        said = self.said()
        return said[2] if said and said[1] >= self._taken else time.monotonic()

    def has_not_sent(self, waited_s: float) -> None:
        """The clock has had a call for so long."""
        if self._clock and self.slot is not None:
            self._clock.has_not_sent(waited_s)

    def close(self) -> None:
        """Before the descriptors themselves are closed. What was read by then, and is counted later, is of no slot: it
        may be another chamber's by now.
        """
        self.arrivals.close()
        if self._clock and self.slot is not None:
            self._clock.drop(self.slot)
        self._clock = None

    def _begin(self, call: bytes) -> None:
        if self.slot is None and self._clock:
            self.slot = self._clock.watch(self._there, self._back, self._lose)
            if self.slot is not None:
                self.arrivals.close()
                self._clock.take(self.slot, self._taken)
        self._call = self._clock.call(self.slot, call) if self._clock and self.slot is not None else None

    def _lose(self) -> None:
        self.slot = self._call = None
        self.arrivals = Arrivals(self._back)
        if self.by_clock:
            self.lost()
