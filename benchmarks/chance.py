"""What could have been chance: intervals by resampling, and whether one group of numbers is above another."""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TypeVar

Item = TypeVar("Item")
Interval = tuple[float, float]
ROUNDS = 2000


def interval(statistic: Callable[[random.Random], float], rounds: int = ROUNDS, seed: int = 0) -> Interval:
    """The middle 95 % of a statistic of resampled data."""
    rng = random.Random(seed)
    found = sorted(statistic(rng) for _ in range(rounds))
    return found[int(0.025 * rounds)], found[int(0.975 * rounds)]


def of_mean(values: Sequence[float]) -> Interval:
    return interval(lambda rng: statistics.fmean(resampled(values, rng)))


def wilson(hits: int, of: int) -> Interval:
    """The 95 % interval of a share, right for small shares too."""
    z, share = 1.96, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), middle + half


def resampled(values: Sequence[Item], rng: random.Random) -> list[Item]:
    return rng.choices(values, k=len(values))


def above(some: Sequence[float], others: Sequence[float]) -> float:
    """Mann and Whitney's one-sided p: how likely it is that `some` lie so far above `others` by chance."""
    return above_in_all([(some, others)])


def above_in_all(groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The same over several groups, compared only within each: wins, and what chance gives, are added up."""
    surplus, variance = 0.0, 0.0
    for some, others in groups:
        n, m = len(some), len(others)
        surplus += sum((a > b) + 0.5 * (a == b) for a in some for b in others) - n * m / 2
        together = sorted([*some, *others])
        ties = sum(count**3 - count for count in (together.count(value) for value in set(together)))
        variance += n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    return 1 - NormalDist().cdf((surplus - 0.5) / math.sqrt(variance)) if variance else 1.0
