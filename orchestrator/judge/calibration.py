"""What a channel adds to a call: how it is measured, and the shortest call that can be told from none over it.

Pure. A judge's module reckons the same, in its own chamber.
"""

import math
import statistics
from collections.abc import Sequence

WARM_UP = 4
EMPTY_CALLS = 32


def spread(times: Sequence[float]) -> tuple[float, float]:
    """The median, and what nine of ten differ from it at most."""
    median = statistics.median(times)
    off = sorted(abs(taken - median) for taken in times)
    return median, off[int(0.9 * (len(off) - 1))]


def resolution(jitter: float, calls: int) -> float:
    """The least that the median of so many calls tells from nothing: the jitter, or about two standard errors of two
    medians, theirs and that of the empty calls, where that is less.
    """
    return jitter * min(1.0, 2 * math.sqrt(1 / max(1, calls) + 1 / EMPTY_CALLS))


def quieter(before: tuple[float, float], again: tuple[float, float]) -> tuple[float, float]:
    """A channel's median and jitter after it was measured again: what is clearly less counts.

    Never what is more: while the candidate is there it can make either channel slower, and neither of them faster. Not
    what is a little less: the least of many medians would be less than an empty call takes. And what is taken off is in
    doubt from then on, as far as it could be: by all of it.
    """
    calmer = again[1] < before[1] / 2
    if not calmer and before[0] - again[0] < 2 * before[1] / math.sqrt(EMPTY_CALLS):
        return before
    median = min(before[0], again[0])
    return median, min(before[1], max(median, again[1]))
