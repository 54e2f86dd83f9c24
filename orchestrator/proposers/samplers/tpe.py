"""Optuna's tree-structured Parzen estimator, with its defaults, over a bounded view of the past.

Nothing of Optuna's is kept between two proposals: each asks a fresh sampler, seeded for it, in a study in memory that
shows it the attempts chosen. For a Pareto task it is Optuna's multi-objective TPE.

It searches what is left: a branch without an untried point is no part of the space any more, nor are its attempts of
the past, since what was best there says nothing of where to go on.
"""

import logging
import warnings
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from orchestrator.domain.metric import Ranking, Rule
from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point, key_of
from orchestrator.proposers.samplers.branches import Branches, UsedUp
from orchestrator.proposers.samplers.engine import Known, objectives
from orchestrator.proposers.samplers.view import View
from orchestrator.proposers.space import every_int, listed
from orchestrator.task import Bool, Choice, Float, Int, Parameter, in_order, is_there
from orchestrator.task.conditions import is_in

# Optuna's model of what is good takes a tenth, and never more than 25: with 250 in view it is as large as it gets.
LIMIT, BEST, LAST = 250, 50, 75
STARTUP = 10
RUNNING = 64
# Optuna takes the most promising of that many draws. Where that is a known point time and again, single draws of the
# model of what is good find others.
PROMISING, OFFERS = 24, 8
FURTHER = 24
# Optuna goes by numbers: what runs is later than all that ended. The attempt that is asked for has number 0.
_BEHIND = 2**40


class Tpe:
    """With `names`, it models only those, each for itself, beside a sampler that has the others."""

    def __init__(self, space: Mapping[str, Parameter], ranking: Ranking, names: Collection[str] | None = None) -> None:
        _quieten()
        self._space, self._ranking = space, ranking
        self._order = in_order(space)
        self._names = space if names is None else names
        self._known: list[Known] = []
        self._branches = Branches(space)
        self._open = self._opened(UsedUp())

    def tell(self, known: Known) -> None:
        self._known.append(known)
        self._branches.add(known.point)
        self._open.add(known)

    def offers(
        self, running: Sequence[Point], seed: int, number: int, given: Callable[[], Point] | None = None
    ) -> Iterator[Point]:
        """Each drawn again; `given` has the values of what is not modelled here, for each of them."""
        del number
        used_up = self._branches.used_up(running)
        if used_up != self._open.used_up:
            self._open = self._opened(used_up)
        open_, shown = self._open, self._open.shown(running[-RUNNING:])
        if not shown:
            return iter(())
        candidates = [PROMISING] * OFFERS + [1] * FURTHER
        return (
            self._ask(open_, shown, seed + place, draws, given() if given else {})
            for place, draws in enumerate(candidates)
        )

    def _opened(self, used_up: UsedUp) -> "_Open":
        return _Open(self._space, self._names, self._ranking, self._branches, used_up, self._known)

    def _ask(self, open_: "_Open", shown: list[FrozenTrial], seed: int, draws: int, given: Point) -> Point:
        objectives_ = len(self._ranking.metrics) if self._ranking.rule is Rule.PARETO else 1
        study = optuna.create_study(storage=_Shown(shown), directions=["maximize"] * objectives_)
        together = len(self._names) == len(self._space)
        study.sampler = _sampler(seed % 2**32, draws, together, group=any(it.when for it in self._space.values()))
        trial = study.ask()
        point: Point = {}
        for name in self._order:
            if not is_there(self._space[name], point):
                continue
            point[name] = _suggested(trial, name, open_.ways[name]) if name in self._names else given[name]
        return {name: point[name] for name in self._space if name in point}


class _Open:
    """The part of the space that is not used up, and the attempts that lie in it, as Optuna is shown them."""

    def __init__(
        self,
        space: Mapping[str, Parameter],
        names: Collection[str],
        ranking: Ranking,
        branches: Branches,
        used_up: UsedUp,
        known: Iterable[Known],
    ) -> None:
        self._names, self._ranking = names, ranking
        self._branches, self.used_up = branches, used_up
        self.ways = {name: _way(name, it, used_up.values.get(name, ())) for name, it in space.items()}
        self._told = 0
        self._trials: dict[int, FrozenTrial] = {}
        self._view = View(LIMIT, BEST, LAST, self._values)
        for it in known:
            self.add(it)

    def add(self, known: Known) -> None:
        if self.used_up.branches and self._branches.of(known.point) in self.used_up.branches:
            return
        self._told += 1
        self._view.add(known)

    def shown(self, running: Sequence[Point]) -> list[FrozenTrial]:
        """The attempts in view, failed ones behind all others, and those that run; none of them before the start-up."""
        if self._told < STARTUP or not self._view.scored:
            return []
        chosen = self._view.chosen()
        # A tenth is taken for good. So that it never holds a failure, there are at most nine of them for each score.
        spare = 9 * sum(known.merits is not None for known in chosen)
        kept = [it for it in reversed(chosen) if it.merits is not None or (spare := spare - 1) >= 0]
        self._trials = {it.place: self._trials.get(it.place) or self._ended(it) for it in reversed(kept)}
        return [*self._trials.values(), *self._running(running)]

    def _values(self, known: Known) -> tuple[float, ...] | None:
        return None if known.merits is None else objectives(self._ranking, known.merits)

    def _ended(self, known: Known) -> FrozenTrial:
        """One that failed is, in Optuna's words, pruned before its first report: worse than every score."""
        values = self._values(known)
        state = TrialState.PRUNED if values is None else TrialState.COMPLETE
        return self._trial(known.place + 1, state, known.point, values)

    def _running(self, points: Sequence[Point]) -> Iterator[FrozenTrial]:
        """Optuna takes them for bad ones, so that the next point lies elsewhere."""
        for number, point in enumerate(points):
            if self._branches.of(point) not in self.used_up.branches:
                yield self._trial(_BEHIND + number, TrialState.RUNNING, point, None)

    def _trial(
        self, number: int, state: TrialState, point: Mapping[str, Value], values: Sequence[float] | None
    ) -> FrozenTrial:
        return FrozenTrial(
            number=number,
            trial_id=number,
            state=state,
            value=None,
            values=values,
            datetime_start=None,
            datetime_complete=None,
            params={name: self.ways[name].outside(value) for name, value in point.items() if name in self._names},
            distributions={name: self.ways[name].distribution for name in point if name in self._names},
            user_attrs={},
            system_attrs={},
            intermediate_values={},
        )


class _Shown(optuna.storages.InMemoryStorage):
    """A storage in which nothing lies but the attempts that are shown."""

    def __init__(self, shown: list[FrozenTrial]) -> None:
        super().__init__()
        self._shown = shown

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        del study_id, deepcopy  # there is one study, and nobody changes what is shown
        return [it for it in self._shown if states is None or it.state in states]


def _sampler(seed: int, draws: int, together: bool, *, group: bool) -> optuna.samplers.TPESampler:
    return optuna.samplers.TPESampler(seed=seed, n_ei_candidates=draws, multivariate=together, group=together and group)


def _quieten() -> None:
    """Of what Optuna tells everybody: that a study was made, and that `group` may change one day."""
    logging.getLogger(optuna.storages.InMemoryStorage.__module__).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning, message=".*group.*")


@dataclass(frozen=True)
class _Way:
    """A parameter in Optuna's words. A choice and an int are numbered, since Optuna takes 1 and true for one value and
    rounds large numbers; of a choice only the places in `open` are left."""

    parameter: Parameter
    distribution: BaseDistribution
    open: Sequence[int] = ()

    def outside(self, value: Value) -> float:
        match self.parameter:
            case Float():
                return float(value)
            case Int():
                return every_int(self.parameter).index(int(value))
            case Choice():
                return next(at for at, it in enumerate(self.parameter.values) if is_in(value, (it,)))
            case Bool():
                return int(value)


def _way(name: str, parameter: Parameter, gone: Container[str]) -> _Way:
    """Without the values that are gone, unless that leaves none: each of them is then gone only beside some others."""
    match parameter:
        case Float():
            return _Way(parameter, FloatDistribution(parameter.low, parameter.high, log=parameter.log))
        case Int():
            return _Way(parameter, IntDistribution(0, len(every_int(parameter)) - 1))
    values = listed(parameter)
    open_ = [at for at, value in enumerate(values) if key_of({name: value}) not in gone] or range(len(values))
    return _Way(parameter, CategoricalDistribution(open_), open_)


def _suggested(trial: optuna.Trial, name: str, way: _Way) -> Value:
    match way.parameter:
        case Float() as it:
            return min(it.high, max(it.low, trial.suggest_float(name, it.low, it.high, log=it.log)))
        case Int() as it:
            every = every_int(it)
            return every[trial.suggest_int(name, 0, len(every) - 1)]
        case _ as it:
            return listed(it)[trial.suggest_categorical(name, way.open)]
