"""From scores to rows of the screen. A few absurd scores must not press all others into one line, so the axis spans
the best ones and the usual ones; what lies beyond is drawn at the edge, with a sign that says so.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_FENCE = 3.0
_ENOUGH_TO_TELL = 8
# Beyond it, sums and distances of scores are no numbers any more; below the other, parts of a distance are nothing.
_FURTHEST, _NEAREST = 1e300, 1e-300


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    rows: int

    def row(self, value: float) -> int:
        """From the top, at 0, down."""
        share = (value - self.low) / (self.high - self.low)
        return round((1.0 - min(1.0, max(0.0, share))) * (self.rows - 1))

    def beyond(self, value: float) -> int:
        """1 for what lies above it, -1 for what lies below, 0 for all others."""
        return (value > self.high) - (value < self.low)

    def value(self, row: int) -> float:
        if self.rows == 1:
            return (self.low + self.high) / 2
        return self.high - (self.high - self.low) * row / (self.rows - 1)

    def labels(self) -> dict[int, str]:
        """About five, at equal distances from the top and one at the bottom, in digits that tell them apart."""
        gap = max(2, round((self.rows - 1) / 4))
        rows = [row for row in range(0, self.rows, gap) if row + 1 < self.rows - 1]
        step = (self.high - self.low) * gap / max(1, self.rows - 1)
        return {row: _label(self.value(row), step) for row in [*rows, self.rows - 1]}


def axis_of(scores: Sequence[float], best: Sequence[float], rows: int) -> Axis:
    """`best` is always inside, unless a float can hardly tell it."""
    scores, best = list(map(drawable, scores)), list(map(drawable, best))
    low, high = _fences(scores)
    inside = [*(score for score in scores if low <= score <= high), *best] or [0.0]
    low, high = min(inside), max(inside)
    if high - low <= max(abs(high) * 1e-12, _NEAREST):
        margin = max(abs(high) * 0.05, _NEAREST) if high else 1.0
        low, high = low - margin, high + margin
    return Axis(low, high, rows)


def drawable(score: float) -> float:
    """Where it stands on an axis that a float can tell."""
    return max(-_FURTHEST, min(_FURTHEST, score))


def _fences(scores: Sequence[float]) -> tuple[float, float]:
    """Between them lies what is usual: three times the middle half to each side of it."""
    if len(scores) < _ENOUGH_TO_TELL:
        return -math.inf, math.inf
    lower, _, upper = statistics.quantiles(scores, n=4)
    reach = _FENCE * (upper - lower) or math.inf
    return lower - reach, upper + reach


def _label(value: float, step: float) -> str:
    digits = max(0, 1 - math.floor(math.log10(step)))
    if digits > 6 or max(abs(value), step) >= 1e7:
        return f"{value:.4g}"
    return f"{value:.{digits}f}"
