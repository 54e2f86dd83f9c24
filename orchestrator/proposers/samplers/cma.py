"""CMA-ES with margin, from the package that Optuna's own sampler runs on, without the pickled state of that sampler.

The distribution follows from the attempts that ended, taken in their order, a generation at a time. It covers the ints
and floats that no condition hides; what else there is (choices, switches, conditional parameters) is drawn by TPE, each
parameter for itself. When a search has settled, the next one starts elsewhere with more attempts to a generation.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, cycle

import cmaes
import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.metric import Ranking
from orchestrator.proposers.points import Point
from orchestrator.proposers.samplers.engine import Known, badness, objectives
from orchestrator.proposers.samplers.scale import from_unit, to_unit
from orchestrator.proposers.samplers.tpe import Tpe
from orchestrator.proposers.space import draw, every_int
from orchestrator.task import Float, Int, Parameter, in_order, is_there

FIRST_SIGMA, LATER_SIGMA = 1 / 6, 1 / 4  # of every range; Optuna's is the first
MOST_GROWTH = 8
DRAWS = 16
# Of an int with more values than that, two neighbours are as good as one: it is a number that is rounded.
FEW = 1000

Solution = tuple[NDArray[np.float64], float]


class CmaEs:
    """Raises ValueError for a space without such a number."""

    def __init__(self, space: Mapping[str, Parameter], ranking: Ranking) -> None:
        self._space, self._ranking = space, ranking
        self._numbers = _numbers(space)
        if not self._numbers:
            raise ValueError("the proposer cmaes needs an int or a float without a condition; add one, or use tpe")
        others = [name for name in space if name not in self._numbers]
        self._others = Tpe(space, ranking, others) if others else None
        self._searches = 0
        self._search = self._start()
        self._generation: list[Known] = []

    def tell(self, known: Known) -> None:
        if self._others:
            self._others.tell(known)
        self._generation.append(known)
        if len(self._generation) == self._search.population_size:
            self._search.tell(self._solutions())
            self._generation = []
            if self._search.should_stop():
                self._search = self._start()

    def offers(self, running: Sequence[Point], seed: int, number: int) -> Iterator[Point]:
        self._search.reseed_rng(seed)
        drawn = [self._drawn() for _ in range(DRAWS)]
        if not self._others:
            return iter(drawn)
        modelled = self._others.offers(running, seed, number, cycle(drawn).__next__)
        rng = random.Random(seed)  # noqa: S311  # not for secrets
        # Too little is known of the others at first; they are drawn as they come then.
        return chain(modelled, (self._completed(numbers, rng) for numbers in drawn))

    def _start(self) -> cmaes.CMAwM:
        """The first search begins in the middle; later ones anywhere, with larger generations and wider."""
        place = self._searches
        self._searches += 1
        rng = np.random.default_rng(place)
        dimensions = len(self._numbers)
        first = 4 + int(3 * np.log(dimensions))
        return cmaes.CMAwM(
            mean=rng.random(dimensions) if place else np.full(dimensions, 0.5),
            sigma=LATER_SIGMA if place else FIRST_SIGMA,
            bounds=np.array([[0.0, 1.0]] * dimensions),
            steps=np.array([_step(it) for it in self._numbers.values()]),
            n_max_resampling=10 * dimensions,
            population_size=first * min(MOST_GROWTH, 2**place),
            seed=place,
        )

    def _solutions(self) -> list[Solution]:
        """The generation as points from 0 to 1, and how bad each is among them: nothing else counts."""
        values = [None if it.merits is None else objectives(self._ranking, it.merits) for it in self._generation]
        return [
            (np.array([to_unit(it, known.point[name]) for name, it in self._numbers.items()]), badness)
            for known, badness in zip(self._generation, badness(values), strict=True)
        ]

    def _drawn(self) -> Point:
        encoded, _ = self._search.ask()
        return {
            name: from_unit(it, float(share)) for (name, it), share in zip(self._numbers.items(), encoded, strict=True)
        }

    def _completed(self, numbers: Point, rng: random.Random) -> Point:
        point: Point = {}
        for name in in_order(self._space):
            if is_there(self._space[name], point):
                point[name] = numbers[name] if name in numbers else draw(self._space[name], rng)
        return {name: point[name] for name in self._space if name in point}


def _numbers(space: Mapping[str, Parameter]) -> dict[str, Float | Int]:
    return {
        name: it
        for name, it in space.items()
        if not it.when and (isinstance(it, Float) or (isinstance(it, Int) and len(every_int(it)) > 1))
    }


def _step(parameter: Float | Int) -> float:
    """How far two values of an int are apart; 0 for what has no steps."""
    if isinstance(parameter, Float):
        return 0.0
    apart = 1 / (len(every_int(parameter)) - 1)
    return apart if apart * FEW >= 1 else 0.0
