"""The signed-rank test on paired differences, exact: every way in which the signs could have fallen is counted.

It asks nothing of the shape of the differences but that, were the two sides alike, either sign would be as likely. So a
pair of which one side has no result at all is simply the largest difference there is.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

# Loaded where it is used: commands that only name a comparison do not wait for it.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# What an interval leaves out, half of it on either side.
LEFT_OUT = 0.05


@dataclass(frozen=True)
class Difference:
    """`typical` is the median of the means of all two differences; `low` and `high` bound it in 95 of 100 comparisons,
    and are None where there are too few pairs for that. `p` is two-sided.
    """

    typical: float
    low: float | None
    high: float | None
    p: float
    above: int
    below: int
    equal: int


def difference_of(differences: Sequence[float]) -> Difference | None:
    """None without any. A difference may be infinite; two opposite ones have the mean 0."""
    if not differences:
        return None
    import numpy as np

    means = sorted(_mean(*two) for two in itertools.combinations_with_replacement(differences, 2))
    cut = _cut(len(differences))
    found = np.array(differences, dtype=float)
    return Difference(
        typical=_mean(means[(len(means) - 1) // 2], means[len(means) // 2]),
        low=means[cut - 1] if cut else None,
        high=means[-cut] if cut else None,
        p=min(1.0, 2 * min(chance_of_less(found), chance_of_less(-found))),
        above=int((found > 0).sum()),
        below=int((found < 0).sum()),
        equal=int((found == 0).sum()),
    )


def chance_of_less(differences: "npt.NDArray[np.float64]") -> float:
    """How likely differences are above nothing as little as these, were either sign as likely. Exact with ties, too."""
    import numpy as np

    order = np.abs(differences)
    # Twice the average rank: whole numbers, ties included.
    ranks = np.array([2 * int((order < it).sum()) + int((order == it).sum()) + 1 for it in order])
    above = int(ranks[differences > 0].sum())
    return float(_chances(ranks[differences != 0])[: above + 1].sum())


def _chances(ranks: "npt.NDArray[np.int_]") -> "npt.NDArray[np.float64]":
    """Of every sum of those ranks whose sign is plus."""
    import numpy as np

    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] += ways[: len(ways) - rank].copy()
        ways /= 2
    return ways


def _cut(count: int) -> int:
    """How many of the sorted means lie outside the interval on either side, plus one; 0 where even all do not do."""
    import numpy as np

    tail = np.cumsum(_chances(np.arange(1, count + 1)))
    return int((tail <= LEFT_OUT / 2).sum())


def _mean(one: float, other: float) -> float:
    # Halved first, so that none overflows.
    mean = one / 2 + other / 2
    return 0.0 if math.isnan(mean) else mean
