"""Optuna's pruners, asked about our curves. The only file of this package that imports it.

They want a study. What they ask one for is little, and a real one would be filled again for every look, so this is a
stand-in with just that; the tests compare it with a real one.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from optuna.pruners import BasePruner, MedianPruner, SuccessiveHalvingPruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Point
from orchestrator.pruning.base import KEEP, Decision, Peers
from orchestrator.pruning.worth import worth

_DIRECTIONS = {Goal.HIGHER: StudyDirection.MAXIMIZE, Goal.LOWER: StudyDirection.MINIMIZE}


class _Storage:
    """Halving notes there which rungs a trial has passed; we know that from its curve."""

    def set_trial_system_attr(self, *_: object) -> None:
        pass


class _Study:
    """What a pruner asks a study for."""

    def __init__(self, goal: Goal, trials: list[FrozenTrial]) -> None:
        self.direction = _DIRECTIONS[goal]
        self._trials = trials
        self._storage = _Storage()

    def get_trials(self, deepcopy: bool = True, states: Sequence[TrialState] | None = None) -> list[FrozenTrial]:  # noqa: ARG002  Optuna's signature
        return self._trials


def _trial(values: Mapping[int, float], attrs: dict[str, Any] | None = None, *, over: bool = True) -> FrozenTrial:
    return FrozenTrial(
        number=0,
        state=TrialState.COMPLETE if over else TrialState.RUNNING,
        value=None,
        datetime_start=None,
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={},
        system_attrs=attrs or {},
        intermediate_values=dict(values),
        trial_id=0,
    )


def _asked(pruner: BasePruner, goal: Goal, trial: FrozenTrial, others: list[FrozenTrial]) -> bool:
    with np.errstate(all="ignore"):
        return bool(pruner.prune(cast(Study, _Study(goal, others)), trial))


class Median:
    """Worse, at its best so far, than the median of its peers at this step."""

    def __init__(self, goal: Goal, startup: int) -> None:
        self._goal = goal
        self._startup = startup
        self._pruner = MedianPruner(n_startup_trials=0)

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        step = curve[-1][0]
        there = worth(peers, self._goal, step)
        values = there.scored
        if there.sure < self._startup:
            return KEEP
        others = [_trial({step: value}) for value in values]
        if not _asked(self._pruner, self._goal, _trial(dict(curve), over=False), others):
            return KEEP
        # Between two values, numpy's median can differ in the last digit from their mean: who is at it stays.
        best = (max if self._goal is Goal.HIGHER else min)(value for _, value in curve)
        middle = statistics.median(values)
        if not (best < middle if self._goal is Goal.HIGHER else best > middle):
            return KEEP
        side = "below" if self._goal is Goal.HIGHER else "above"
        return Decision(True, f"step {step}: {best:g} at best, {side} the median {middle:g} of {len(values)} peers")


class Halving:
    """Not among the best one in `reduction` of those that came to a rung; rungs are at `least`, `least` times
    `reduction`, and so on. Who was pruned at a rung came to it, too.
    """

    def __init__(self, goal: Goal, startup: int, reduction: int, least: int) -> None:
        self._goal = goal
        self._startup = startup
        self._reduction = reduction
        self._least = least
        self._pruner = SuccessiveHalvingPruner(min_resource=least, reduction_factor=reduction)

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        step, value = curve[-1]
        rung = self._rungs_by(step)
        if rung == (self._rungs_by(curve[-2][0]) if len(curve) > 1 else 0):
            return KEEP
        there = worth(peers, self._goal, step)
        values = [*there.scored, *there.pruned]
        # Optuna's own start-up (bootstrap_count) prunes a trial that comes to an empty rung; here they stay.
        if there.sure + len(there.pruned) < self._startup:
            return KEEP
        passed = {f"completed_rung_{below}": value for below in range(rung - 1)}
        others = [_trial({}, {f"completed_rung_{rung - 1}": it}) for it in values]
        if not _asked(self._pruner, self._goal, _trial(dict(curve), passed, over=False), others):
            return KEEP
        told = (
            f"step {step}: {value:g} is not in the best 1 of {self._reduction} among {len(values)} peers at this rung"
        )
        return Decision(True, told)

    def _rungs_by(self, step: int) -> int:
        """How many rungs lie at or before a step."""
        rungs, place = 0, self._least
        while place <= step:
            rungs, place = rungs + 1, place * self._reduction
        return rungs
