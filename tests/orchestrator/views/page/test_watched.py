"""Whether the benchmark of the page can tell that a campaign is slowed by its viewers."""

import random
import statistics

from benchmarks.chance import interval, resampled
from benchmarks.watched import FOURS, ratios_of, turns


def test_viewers_come_and_go_in_turn() -> None:
    """As often as not, and at the same mean time in each four blocks."""
    looked = turns(2)
    assert looked == [True, False, False, True, False, True, True, False]


def test_what_drifts_is_no_slowing() -> None:
    """However steep: each four blocks have as much of it with viewers as without."""
    looked = turns(FOURS)
    assert ratios_of([10 + number for number in range(len(looked))], looked) == [1.0] * FOURS


def test_a_slowing_of_a_hundredth_is_told_from_none() -> None:
    """Where a block's cost varies by a fiftieth, and drifts."""
    looked = turns(FOURS)

    def told(slowing: float) -> tuple[float, float]:
        draw = random.Random(7)
        costs = [(1 + 0.002 * at + draw.gauss(0, 0.02)) * (slowing if it else 1) for at, it in enumerate(looked)]
        ratios = ratios_of(costs, looked)
        return interval(lambda rng: statistics.median(resampled(ratios, rng)))

    low, high = told(1.0)
    assert low < 1 < high < 1.01
    assert told(1.03)[0] > 1.01
