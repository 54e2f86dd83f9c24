"""A Gaussian process over what was tried; the next point is where most improvement is expected.

Our own, since Optuna's needs PyTorch. It looks at a bounded part of the past, so a proposal costs the same in a long
campaign. Attempts that run are taken to end as expected. For a Pareto task the metrics are weighed by chance, again for
each proposal (ParEGO). Improvement is on the best of those branches that have an untried point left: measured by what
cannot be had any more, nothing would look worth trying.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.metric import Ranking
from orchestrator.proposers.points import Point
from orchestrator.proposers.samplers.box import Array, Box
from orchestrator.proposers.samplers.branches import Branches
from orchestrator.proposers.samplers.engine import Known, objectives
from orchestrator.proposers.samplers.gaussian import Gaussian
from orchestrator.proposers.samplers.view import View
from orchestrator.task import Parameter

LIMIT, BEST, LAST = 120, 40, 40
STARTUP = 10
RUNNING = 32
DRAWN = 600
NEAR, AROUND = 6, 40
REACHES = (0.1, 0.03, 0.1, 0.03, 0.01, 0.003)


class Gp:
    def __init__(self, space: Mapping[str, Parameter], ranking: Ranking) -> None:
        self._ranking = ranking
        self._box = Box(space)
        self._told = 0
        self._branches = Branches(space)
        self._view = View(LIMIT, BEST, LAST, self._objectives)

    def tell(self, known: Known) -> None:
        self._told += 1
        self._branches.add(known.point)
        self._view.add(known)

    def offers(self, running: Sequence[Point], seed: int, number: int) -> Iterator[Point]:
        del number
        if self._told < STARTUP or self._view.scored < 2:
            return iter(())
        # What is looked at is fixed now; the rest is done when somebody asks for a point.
        chosen = self._view.chosen()
        used_up = self._branches.used_up(running).branches
        left = np.array([not used_up or self._branches.of(it.point) not in used_up for it in chosen])
        return self._found(chosen, left, running[-RUNNING:], np.random.default_rng(seed))

    def _objectives(self, known: Known) -> tuple[float, ...] | None:
        return None if known.merits is None else objectives(self._ranking, known.merits)

    def _found(
        self, chosen: Sequence[Known], left: NDArray[np.bool_], running: Sequence[Point], rng: np.random.Generator
    ) -> Iterator[Point]:
        """`left` says which of the attempts lie in a branch that is not used up."""
        rows = self._box.rows([known.point for known in chosen])
        values = _levelled([self._objectives(known) for known in chosen], rng)
        model = Gaussian(rows, values, self._box.choices)
        if running:
            model.believe(self._box.rows(running))
        if left.any():
            rows, values = rows[left], values[left]
        top = float(model.predict(rows)[0].max())
        found = self._climbed(model, rows[np.argsort(-values, kind="stable")[:NEAR]], top, rng)
        yield from (self._box.point(row) for row in found)

    def _climbed(self, model: Gaussian, best: Array, top: float, rng: np.random.Generator) -> Array:
        """Rows anywhere and around the best ones, then around the most promising of those; the best first."""
        rows = np.concatenate(
            [self._box.drawn(DRAWN, rng), self._around(best, 0.1, rng), self._around(best, 0.02, rng)]
        )
        rows = self._sorted(model, rows, top)
        for reach in REACHES:
            near = self._around(rows[:NEAR], reach, rng)
            rows = np.concatenate([self._sorted(model, np.concatenate([rows[:NEAR], near]), top), rows[NEAR:]])
        return rows

    def _around(self, rows: Array, reach: float, rng: np.random.Generator) -> Array:
        return self._box.moved(np.repeat(rows, AROUND, axis=0), reach, rng)

    def _sorted(self, model: Gaussian, rows: Array, top: float) -> Array:
        mean, spread = model.predict(self._box.seen(rows))
        promise = _improvement((mean - top) / spread) + np.log(spread)
        return rows[np.argsort(-promise, kind="stable")]


def _levelled(values: Sequence[tuple[float, ...] | None], rng: np.random.Generator) -> Array:
    """One number each, with mean 0 and spread 1; what is far below the others, or failed, is no lower than the rest."""
    scored = np.array([it for it in values if it is not None])
    if scored.shape[1] > 1:
        low, high = scored.min(axis=0), scored.max(axis=0)
        weighed = (scored - low) / np.where(high > low, high - low, 1.0) * rng.dirichlet(np.ones(scored.shape[1]))
        numbers = weighed.min(axis=1) + 0.05 * weighed.sum(axis=1)
    else:
        numbers = scored[:, 0]
    quarter, half, most = np.quantile(numbers, [0.25, 0.5, 0.75])
    numbers = np.maximum(numbers, half - 4 * (most - quarter)) if most > quarter else numbers
    spread = numbers.std() or 1.0
    level = iter((numbers - numbers.mean()) / spread)
    worst = (numbers.min() - numbers.mean()) / spread
    return np.array([worst if it is None else next(level) for it in values])


def _improvement(z: Array) -> Array:
    """The logarithm of what is to be expected above 0 of a normal variable with mean z and spread 1."""
    near = np.maximum(z, -6.0)
    normal = np.exp(-0.5 * near**2) / math.sqrt(2 * math.pi)
    below = np.array([0.5 * math.erfc(-it / math.sqrt(2)) for it in near])
    far = np.minimum(z, -6.0)
    by_formula: Array = np.log(np.maximum(normal + near * below, 1e-300))
    by_series: Array = -0.5 * far**2 - 0.5 * math.log(2 * math.pi) - 2 * np.log(-far)
    return np.where(z > -6.0, by_formula, by_series)
