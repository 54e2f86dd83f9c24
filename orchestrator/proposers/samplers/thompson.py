"""Thompson sampling: each value of each parameter is an arm, and the point is made of the arms whose draws win.

An arm's reward is how an attempt with that value stands among the others, so scores of any scale do. What is believed
of an arm is a normal distribution; one draw of it, and the largest of a parameter's draws decides. Little known arms
draw widely and are tried; those known to be worse stop winning.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.metric import Ranking
from orchestrator.proposers.points import Point, key_of
from orchestrator.proposers.samplers.branches import Branches
from orchestrator.proposers.samplers.engine import Known, objectives
from orchestrator.proposers.samplers.view import View
from orchestrator.proposers.space import steps
from orchestrator.task import Choice, Parameter, in_order, is_there
from orchestrator.task.conditions import is_in

MOST_ARMS = 256
# No best ones for their own sake: an arm's mean must not look better than it is.
LIMIT, BEST, LAST = 400, 0, 200
# Where a point is known already, the next draw is wider; at the last one what was learnt hardly counts.
OFFERS, WIDEST = 64, 8.0
NO_ARM = -1

Array = NDArray[np.float64]


def arms_of(space: Mapping[str, Parameter]) -> dict[str, Choice]:
    """The space as the grid has it: a number is one of its `points`. Raises ValueError where one has too many."""
    arms: dict[str, Choice] = {}
    for name, it in space.items():
        values = steps(it)
        if len(values) > MOST_ARMS:
            raise ValueError(
                f"the proposer thompson has an arm for each value, and {name} has {len(values):,} of them; "
                f"set its points ({MOST_ARMS} at most), or use tpe"
            )
        arms[name] = Choice(values=tuple(values), when=it.when)
    return arms


class Thompson:
    """Of a space of choices, see `arms_of`."""

    def __init__(self, space: Mapping[str, Choice], ranking: Ranking) -> None:
        self._space, self._ranking = space, ranking
        self._order = in_order(space)
        self._branches = Branches(space)
        self._view = View(LIMIT, BEST, LAST, self._objectives)
        self._codes: dict[int, list[int]] = {}

    def tell(self, known: Known) -> None:
        self._branches.add(known.point)
        self._view.add(known)
        self._codes[known.place] = self._coded(known.point)

    def offers(self, running: Sequence[Point], seed: int, number: int) -> Iterator[Point]:
        del number
        rng = np.random.default_rng(seed)
        chosen = self._view.chosen()
        rewards = _rewards([self._objectives(it) for it in chosen], rng)
        codes = np.array([self._codes[it.place] for it in chosen], dtype=np.int64).reshape(
            len(chosen), len(self._space)
        )
        at_work = [self._coded(it) for it in running]
        gone = self._branches.used_up(running).values
        beliefs = {
            name: _believed(codes[:, at], rewards, len(it.values), [row[at] for row in at_work])
            for at, (name, it) in enumerate(self._space.items())
        }
        return self._drawn(beliefs, gone, rng)

    def _objectives(self, known: Known) -> tuple[float, ...] | None:
        return None if known.merits is None else objectives(self._ranking, known.merits)

    def _coded(self, point: Mapping[str, object]) -> list[int]:
        return [_place(it, point[name]) if name in point else NO_ARM for name, it in self._space.items()]

    def _drawn(
        self, beliefs: Mapping[str, tuple[Array, Array]], gone: Mapping[str, Set[str]], rng: np.random.Generator
    ) -> Iterator[Point]:
        closed = {name: self._closed(name, gone) for name in self._space}
        for width in np.geomspace(1.0, WIDEST, OFFERS):
            point: Point = {}
            for name in self._order:
                if is_there(self._space[name], point):
                    mean, spread = beliefs[name]
                    draws = mean + width * spread * rng.normal(size=len(mean)) - closed[name]
                    point[name] = self._space[name].values[int(np.argmax(draws))]
            yield {name: point[name] for name in self._space if name in point}

    def _closed(self, name: str, gone: Mapping[str, Set[str]]) -> Array:
        """Infinite for an arm whose every point is tried, unless all are."""
        keys = gone.get(name, frozenset())
        closed = np.array([key_of({name: it}) in keys for it in self._space[name].values])
        return np.where(closed & ~closed.all(), np.inf, 0.0)


def _place(choice: Choice, value: object) -> int:
    return next(at for at, it in enumerate(choice.values) if is_in(value, (it,)))


def _believed(codes: NDArray[np.int64], rewards: Array, arms: int, running: Sequence[int]) -> tuple[Array, Array]:
    """Mean and deviation of each arm's reward. An arm that nobody tried is as the others, give or take 1.

    What runs is taken to end as expected: it makes an arm no better, and its next draw less wide.
    """
    there = codes != NO_ARM
    tried = np.bincount(codes[there], minlength=arms)
    middle = rewards[there].mean() if there.any() else 0.0
    sums = np.bincount(codes[there], weights=rewards[there] - middle, minlength=arms)
    at_work = np.bincount([it for it in running if it != NO_ARM], minlength=arms)
    return middle + sums / (tried + 1), 1 / np.sqrt(tried + at_work + 1)


def _rewards(values: Sequence[tuple[float, ...] | None], rng: np.random.Generator) -> Array:
    """Where each stands among all, as a normal variable. Equal ones stand alike; below all others what has no score.

    Several metrics of a Pareto task are weighed by chance, again for each proposal.
    """
    scored = [it for it in values if it is not None]
    if not scored:
        return np.zeros(len(values))
    ranks: Array = np.array(
        [_ranks([np.nan if it is None else it[at] for it in values]) for at in range(len(scored[0]))]
    )
    weighed: Array = rng.dirichlet(np.ones(len(ranks)))[:, None] * ranks
    return _ranks(weighed.min(axis=0) + 0.05 * weighed.sum(axis=0))


def _ranks(numbers: Sequence[float] | Array) -> Array:
    low_first = np.nan_to_num(np.asarray(numbers, dtype=float), nan=-np.inf)
    _, place, counts = np.unique(low_first, return_inverse=True, return_counts=True)
    shares = (np.cumsum(counts) - counts / 2) / len(low_first)
    normal: Array = np.array([NormalDist().inv_cdf(share) for share in shares])
    return normal[place]
