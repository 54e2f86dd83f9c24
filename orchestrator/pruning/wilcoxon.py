"""Optuna's Wilcoxon rule: worse than the best trial on the same steps, by the signed-rank test.

Optuna's own needs scipy for the test, a large library for one number. Here the number is computed by our own exact
test; what is made of it is what Optuna makes.
"""

from collections.abc import Sequence

import numpy as np

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Point
from orchestrator.domain.signed_rank import chance_of_less
from orchestrator.pruning.base import KEEP, Decision, Peers
from orchestrator.pruning.worth import bar, goal_sign, trusted


class Wilcoxon:
    def __init__(self, goal: Goal, startup: int, threshold: float) -> None:
        self._goal = goal
        self._startup = startup
        self._threshold = threshold

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        if peers.best is None or trusted(peers, self._goal, curve[-1][0]) < self._startup:
            return KEEP
        steps = (step for step, _ in peers.best.points)
        best = {step: value for step in steps if (value := bar(peers, self._goal, step)) is not None}
        shared = [(value, best[step]) for step, value in curve if step in best]
        if not shared:
            return KEEP
        sign = goal_sign(self._goal)
        p = worse(np.array([[sign * mine, sign * theirs] for mine, theirs in shared]))
        mean, level = (sum(value / len(part) for value in part) for part in ([v for _, v in curve], best.values()))
        # As Optuna does: where it is on average no worse than the best trial over all of its steps, it stays.
        if p >= self._threshold or sign * mean >= sign * level:
            return KEEP
        told = f"worse than {peers.best.trial} on {len(shared)} steps (signed-rank p = {p:.2g})"
        return Decision(True, f"step {curve[-1][0]}: {told}")


def worse(pairs: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> float:
    """How likely pairs (mine, theirs) favour mine as little as these, were both the same; more is better."""
    # Halved before the difference, so that none overflows.
    return chance_of_less(pairs[:, 0] / 2 - pairs[:, 1] / 2)
