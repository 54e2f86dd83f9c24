"""The rate of tokens over a sliding window of counted time: time under a hold is not in it."""

from collections import deque

from orchestrator.watch.config import BINS, MICRO, Config, micro


class Window:
    """A ring of bins. The rate is looked at whenever a bin is full, so that it does not depend on who asks when.

    `lowest` is the highest floor under which the stream so far would have lived: what a floor can be learnt from.
    """

    def __init__(self, config: Config) -> None:
        self._length = max(1, micro(config.window_s) // BINS)
        self._grace = micro(config.grace_s)
        self._bins: deque[int] = deque(maxlen=BINS)
        self._sum = 0
        self._open = 0
        self._into = 0
        self._counted = 0
        self._recent: deque[float] = deque(maxlen=config.patient_bins)
        self.lowest: float | None = None

    @property
    def left(self) -> int:
        """Microseconds until the present bin is full."""
        return self._length - self._into

    @property
    def empty(self) -> bool:
        """No token in all of it."""
        return not self._sum and not self._open

    def add(self, tokens: int) -> None:
        self._open += tokens

    def wait(self, span: int) -> None:
        """Less than what is left of the bin."""
        self._into += span

    def close(self) -> float | None:
        """The bin is full. Gives the rate, None while there is grace."""
        if len(self._bins) == BINS:
            self._sum -= self._bins[0]
        self._bins.append(self._open)
        self._sum += self._open
        self._open = self._into = 0
        self._counted += self._length
        if self._counted < self._grace:
            return None
        rate = self._sum * MICRO / (len(self._bins) * self._length)
        self._recent.append(rate)
        if len(self._recent) == self._recent.maxlen:
            highest = max(self._recent)
            self.lowest = highest if self.lowest is None else min(self.lowest, highest)
        return rate

    def stays_below(self, floor: float) -> bool:
        """At every look of late, for as long as patience lasts."""
        return len(self._recent) == self._recent.maxlen and max(self._recent) < floor

    def rate(self) -> float | None:
        span = len(self._bins) * self._length + self._into
        return (self._sum + self._open) * MICRO / span if span else None
