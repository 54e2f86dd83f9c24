"""Could chance alone have given one side so many of the best results?

Two sides made equally many attempts. Were the one's drawn as blindly as the other's, every way to share out the
results between them would be as likely as any other, and how many of the best fall to one side would follow the
hypergeometric distribution. That holds whatever the scores look like, and asks nothing of their spread.

It does not say that the best itself is no luck: who finds one good result by chance and then stays close to it has
many of the best, too. So it is also estimated how far blind draws reach, from the spacing of the other side's own best.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.metric import Ranking, Rule

LEAST_ATTEMPTS = 5
_LEAST_LOOKED_AT = 5
_SHARE = 5
_MOST_SPACED = 10

Values = Mapping[str, float]
Level = tuple[float, ...]


@dataclass(frozen=True)
class Lead:
    """Of the best `looked_at` results of both, `own` are of the first side; `p` is how often blind draws give that
    many or more. `reach` is about how often the best of as many blind draws gets as far as the first side's best; None
    where that cannot be told.
    """

    looked_at: int
    own: int
    p: float
    reach: float | None = None


def lead_of(mine: Sequence[Values | None], theirs: Sequence[Values | None], ranking: Ranking) -> Lead | None:
    """None is an attempt without a score and ranks lowest. Ties count for the other side, so `p` is never too small.

    Nothing is said of fewer than five of each.
    """
    each = len(mine)
    if each != len(theirs):
        raise ValueError(f"{each} attempts against {len(theirs)}; compare equally many")
    if each < LEAST_ATTEMPTS:
        return None
    looked_at = best_to_look_at(each)
    levels = levels_of([*mine, *theirs], ranking)
    order = sorted(range(2 * each), key=lambda at: (levels[at], at >= each), reverse=True)
    own = sum(at < each for at in order[:looked_at])
    reach = None
    if ranking.rule is not Rule.PARETO:
        sides = [[level[0] for level in side if level] for side in (levels[:each], levels[each:])]
        reach = reach_of(sides[0], sides[1], each)
    return Lead(looked_at, own, upper_tail(own, looked_at, each), reach)


def best_to_look_at(each: int) -> int:
    """A fifth as many as each side made, at least five: known before the first score, so that nobody can choose it."""
    return max(_LEAST_LOOKED_AT, math.ceil(each / _SHARE))


def upper_tail(own: int, looked_at: int, each: int) -> float:
    """The chance that at least `own` of the best `looked_at` of 2 x `each` results belong to a side drawn blindly."""
    whole = _ways(2 * each, looked_at)
    chances = (
        math.exp(_ways(each, count) + _ways(each, looked_at - count) - whole)
        for count in range(max(own, looked_at - each), min(looked_at, each) + 1)
    )
    return min(1.0, math.fsum(chances))


def reach_of(mine: Sequence[float], drawn: Sequence[float], each: int) -> float | None:
    """How often the best of `each` blind draws gets as far as the best of `mine`, if far out they thin out as an
    exponential tail does, or faster. None where the best of `drawn` do not tell how fast.
    """
    best = sorted(drawn, reverse=True)
    count = min(best_to_look_at(each), _MOST_SPACED)
    if not mine or len(best) <= count or best[0] <= best[count]:
        return None
    level = best[count]
    spread = sum(value - level for value in best[:count])
    # The spread is itself an estimate from `count` values: this is the tail that allows for it.
    beyond = (count / each) * (1 + max(0.0, max(mine) - level) / spread) ** -count
    return 1 - (1 - min(1.0, beyond)) ** each


def levels_of(results: Sequence[Values | None], ranking: Ranking) -> list[Level]:
    """One key a result, more is better, equal where the ranking puts neither first; no score has the lowest of all."""
    if ranking.rule is not Rule.PARETO:
        return [ranking.standing(values) if values is not None else () for values in results]
    merits = [ranking.merits(values) if values is not None else None for values in results]
    fronts = _fronts([it for it in merits if it is not None])
    return [(-float(fronts[it]),) if it is not None else () for it in merits]


def _fronts(merits: Sequence[Level]) -> dict[Level, int]:
    """Which peel each lies in: 0 is dominated by none, 1 only by those of 0, and so on."""
    fronts: list[list[Level]] = []
    found: dict[Level, int] = {}
    # In this order nothing is dominated by what comes after it, so each has to be held against those before it only.
    for it in sorted(set(merits), reverse=True):
        low, high = 0, len(fronts)
        while low < high:
            middle = (low + high) // 2
            if any(all(a >= b for a, b in zip(other, it, strict=True)) for other in fronts[middle]):
                low = middle + 1
            else:
                high = middle
        if low == len(fronts):
            fronts.append([])
        fronts[low].append(it)
        found[it] = low
    return found


def _ways(of: int, chosen: int) -> float:
    """The logarithm of how many ways there are to choose."""
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)
