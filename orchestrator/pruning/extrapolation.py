"""Where a learning curve is going: a few families of curves, each fitted in closed form over a fixed grid of shapes.

For one shape, `level + gain * basis(step)` is a straight-line fit, so a fit is bounded, deterministic and knows its own
error. The answer is a mixture over all shapes, weighted by how well each fits: few points leave many shapes in, and
they disagree about the end. That is the uncertainty.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Point
from orchestrator.pruning.base import KEEP, Decision, Peers
from orchestrator.pruning.worth import bar, goal_sign, trusted

Array = np.ndarray[Any, np.dtype[np.float64]]

LEAST_POINTS = 4
# What is left of a curve's range as noise where a fit leaves none: no curve is known better than that.
_FLOOR = 0.01
# Residuals of a curve hang together, so that they count for less than as many independent ones.
_WORTH = 0.5
_FREEDOM = 6

_POWERS = np.array([0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])
_DECAYS = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
_PLACES = np.array([0.1, 0.3, 1.0, 3.0])
_SLOPES = np.array([0.5, 1.0, 2.0, 4.0])


class Extrapolation:
    """Too unlikely to end better than the best trial did. It may run as long as the longest of its peers."""

    def __init__(self, goal: Goal, startup: int, threshold: float) -> None:
        self._goal = goal
        self._startup = startup
        self._threshold = threshold

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        step = curve[-1][0]
        if peers.best is None or len(curve) < LEAST_POINTS or trusted(peers, self._goal, step) < self._startup:
            return KEEP
        end = max(peer.last[0] for peer in (*peers.scored, peers.best))
        target = bar(peers, self._goal, peers.best.last[0])
        if target is None:
            return KEEP
        sign = goal_sign(self._goal)
        if step >= end or any(sign * value >= sign * target for _, value in curve):
            return KEEP
        likely = chance([(at, sign * value) for at, value in curve], end, sign * target)
        if likely >= self._threshold:
            return KEEP
        told = f"{likely:.1%} likely to end better than {peers.best.trial} ({target:g} at step {peers.best.last[0]})"
        return Decision(True, f"step {step}: at {curve[-1][1]:g}, {told}")


def chance(curve: Sequence[Point], end: int, target: float) -> float:
    """How likely the curve is above the target at its end. Of finite values, whatever their size."""
    steps = np.array([step for step, _ in curve], dtype=np.float64)
    size = max(abs(target), *(abs(value) for _, value in curve)) or 1.0
    values = np.array([value / size for _, value in curve])
    with np.errstate(all="ignore"):
        bases = _bases((steps + 1) / (steps[0] + 1), (end + 1) / (steps[0] + 1))
        return _mixture(bases, values, target / size)


def _bases(at: Array, end: float) -> list[Array]:
    """For each family, a row a shape and a column a point, the last one the end; all fall from about 1 towards 0."""
    along = np.append(at, end)
    places, slopes = (grid.ravel()[:, None] for grid in np.meshgrid(_PLACES * at[-1], _SLOPES))
    return [
        along ** -_POWERS[:, None],
        np.exp(-_DECAYS[:, None] * (along - 1) / (at[-1] - 1)),
        1 / (1 + (along / places) ** slopes),
    ]


def _mixture(bases: list[Array], values: Array, target: float) -> float:
    count = len(values)
    mean = values.mean()
    floor = (_FLOOR * (values.max() - values.min())) ** 2 * count + 1e-18
    weights, chances = [], []
    for family in bases:
        seen, ahead = family[:, :-1], family[:, -1]
        middle = seen.mean(axis=1)
        spread = ((seen - middle[:, None]) ** 2).sum(axis=1)
        gain = ((seen - middle[:, None]) * (values - mean)).sum(axis=1) / spread
        fitted = mean + gain[:, None] * (seen - middle[:, None])
        left = ((values - fitted) ** 2).sum(axis=1) + floor
        error = np.sqrt(left / (count - 2) * (1 + 1 / count + (ahead - middle) ** 2 / spread))
        at_end = mean + gain * (ahead - middle)
        usable = (spread > 1e-9) & np.isfinite(error) & (error > 0)
        weights.append(np.where(usable, -_WORTH * count / 2 * np.log(left), -np.inf) - np.log(len(family)))
        chances.append(np.where(usable, below((at_end - target) / error, min(_FREEDOM, count - 2)), 0.0))
    logs, each = np.concatenate(weights), np.concatenate(chances)
    if not np.isfinite(logs.max()):
        return 1.0
    shares = np.exp(logs - logs.max())
    return float((shares * each).sum() / shares.sum())


def below(t: Array, freedom: int) -> Array:
    """Student's distribution for a whole number of degrees of freedom, by its finite series."""
    angle = np.arctan(t / np.sqrt(freedom))
    cosine, sine = np.cos(angle), np.sin(angle)
    term = cosine if freedom % 2 else np.ones_like(angle)
    total = np.zeros_like(angle)
    for k in range(1 + freedom % 2, freedom, 2):
        total = total + term
        term = term * cosine**2 * k / (k + 1)
    inside: Array = (angle + sine * total) * 2 / np.pi if freedom % 2 else sine * total
    return 0.5 + inside / 2
