"""What a peer's curve is worth: no more than its verdict says. A curve is a candidate's own word and measures others,
so that otherwise two forged curves of worthless candidates would have every later trial ended.

Reports and scores may be on different scales, so only their order is compared, at each step: a peer is worth what it
reported, up to the middle one of those that the judge found better. The baseline is one of these; where it reported
nothing, nothing is known of what those worse than it could have. A pruned peer has no verdict and stands behind all
that have one.
"""

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from orchestrator.domain.metric import Goal
from orchestrator.pruning.base import Peer, Peers


class Worth(NamedTuple):
    """At one step: what the scored and the pruned peers that came to it are worth. `sure` of the scored ones reported
    no more than that, and only they count towards the number that a rule waits for. `doubted` did, at this step or
    before they were over.
    """

    scored: Sequence[float]
    pruned: Sequence[float]
    sure: int
    doubted: int


def worth(peers: Peers, goal: Goal, step: int) -> Worth:
    key = ("worth", goal, step)
    if key not in peers.memo:
        sign = goal_sign(goal)
        line = by_verdict(peers.scored, peers.baseline, sign, step)
        most = _middle(sorted(it.worth for it in line))
        there = [it for it in line if it.peer is not peers.baseline and it.peer.at(step) is not None]
        pruned = (min(sign * value, most) for it in peers.pruned if (value := it.at(step)) is not None)
        peers.memo[key] = Worth(
            _known((it.worth for it in there), sign),
            _known(pruned, sign),
            sum(not it.doubted for it in there),
            sum(it.doubted for it in line),
        )
    found: Worth = peers.memo[key]
    return found


def trusted(peers: Peers, goal: Goal, step: int) -> int:
    """How many scored peers there are, those that are not here included, and no larger share of these is
    believed than of the ones that are.
    """
    doubted, here = worth(peers, goal, step).doubted, len(peers.scored)
    return peers.count - (math.ceil(doubted * peers.count / here) if here else 0)


def bar(peers: Peers, goal: Goal, step: int) -> float | None:
    """What the best one had reported by then, up to the most that any other is worth: the word of one candidate alone
    ends nobody, however good it is. None where nothing is known.
    """
    key = ("bar", goal, step)
    if key not in peers.memo:
        mine, sign = peers.best.by(step) if peers.best else None, goal_sign(goal)
        most = _most(peers, sign, step)
        peers.memo[key] = None if mine is None or most is None else sign * min(sign * mine, most)
    found: float | None = peers.memo[key]
    return found


def goal_sign(goal: Goal) -> float:
    return 1.0 if goal is Goal.HIGHER else -1.0


def _most(peers: Peers, sign: float, step: int) -> float | None:
    """The most that anyone but the best one is worth, without their whole order: behind the first one by verdict, each
    is held down to what some before it are worth, and only the baseline is not.
    """
    line = peers.memo.get("others")
    if line is None:
        others = sorted((it for it in peers.scored if it != peers.best), key=lambda it: -it.merit)
        line = peers.memo["others"] = [list(alike) for _, alike in groupby(others, key=lambda it: it.merit)]
    begun = ((-alike[0].merit, [sign * v for it in alike if (v := it.by(step)) is not None]) for alike in line)
    first = next(((place, min(values)) for place, values in begun if values), (math.inf, -math.inf))
    most = first[1]
    if peers.baseline:
        value = peers.baseline.by(step)
        known = -math.inf if value is None else sign * value
        most = known if (-peers.baseline.merit, known) <= first else max(most, known)
    return most if math.isfinite(most) else None


class _Place(NamedTuple):
    peer: Peer
    worth: float
    doubted: bool


def by_verdict(scored: Iterable[Peer], baseline: Peer | None, sign: float, step: int) -> list[_Place]:
    """All that had begun, and the baseline, by the judge's word; of two alike, the one with less goes first."""
    line = [(-it.merit, sign * value, it) for it in scored if (value := it.by(step)) is not None]
    if baseline:
        value = baseline.by(step)
        line.append((-baseline.merit, -math.inf if value is None else sign * value, baseline))
    better: list[float] = []
    places = []
    for _, value, peer in sorted(line, key=lambda it: it[:2]):
        counted = value if peer is baseline else min(value, _middle(better))
        insort(better, counted)
        places.append(_Place(peer, counted, counted < value))
    return places


def _middle(values: Sequence[float]) -> float:
    """The lower one of two; nothing holds down the first."""
    return values[(len(values) - 1) // 2] if values else math.inf


def _known(values: Iterable[float], sign: float) -> list[float]:
    return [sign * value for value in values if math.isfinite(value)]
