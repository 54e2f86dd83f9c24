"""The Gaussian process: its slopes, what it predicts, and what it expects to gain."""

import math
from typing import Any

import numpy as np
import pytest

from orchestrator.proposers.samplers import gp
from orchestrator.proposers.samplers.gaussian import Gaussian
from orchestrator.proposers.samplers.gp import _improvement, _levelled


def data(count: int = 25) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    rows = rng.random((count, 3))
    rows[:, 2] = rng.integers(0, 3, count)
    values = np.sin(5 * rows[:, 0]) + rows[:, 1] ** 2 + 0.3 * (rows[:, 2] == 1)
    return rows, (values - values.mean()) / values.std(), np.array([0, 0, 3])


def test_slopes_are_those_of_the_likelihood() -> None:
    """As small steps in every direction find them."""
    rows, values, choices = data()
    model = Gaussian(rows, values, choices)
    logs = np.array([0.5, -0.3, 0.2, 0.1, -3.0])
    _, slope = model._likelihood(logs, values)
    for at in range(len(logs)):
        step = np.zeros(len(logs))
        step[at] = 1e-5
        higher, lower = model._likelihood(logs + step, values)[0], model._likelihood(logs - step, values)[0]
        # The noise has a floor under it, which the slope leaves aside.
        assert slope[at] == pytest.approx((higher - lower) / 2e-5, rel=2e-3, abs=1e-4)


def test_it_knows_what_it_was_told() -> None:
    """Near what it saw it is right and sure, far from it unsure; and it finds a function between the points."""
    rows, values, choices = data(60)
    model = Gaussian(rows[:50], values[:50], choices)
    mean, spread = model.predict(rows[:50])
    assert mean == pytest.approx(values[:50], abs=0.15)
    assert spread.max() < 0.3
    assert model.predict(rows[50:])[0] == pytest.approx(values[50:], abs=0.6)
    assert model.predict(np.array([[9.0, 9.0, 2.0]]))[1][0] > 0.5


def test_what_is_believed_is_not_tried_again() -> None:
    """Where an attempt runs, nothing new is expected."""
    rows, values, choices = data()
    model = Gaussian(rows, values, choices)
    there = np.array([[0.31, 0.52, 1.0]])
    before = model.predict(there)
    model.believe(there)
    after = model.predict(there)
    assert after[0] == pytest.approx(before[0], abs=0.05)
    assert after[1][0] < before[1][0]


def test_expected_improvement() -> None:
    """As integration finds it, and without a jump far below where the formula would be rounded away."""
    grid = np.linspace(0, 12, 200_001)
    for z in (-5.5, -2.0, 0.0, 1.5):
        density = np.exp(-0.5 * (grid - z) ** 2) / math.sqrt(2 * math.pi)
        expected = math.log(float(np.sum(grid * density) * (grid[1] - grid[0])))
        assert _improvement(np.array([z]))[0] == pytest.approx(expected, abs=1e-3)
    low, high = _improvement(np.array([-6.0001, -5.9999]))
    assert low == pytest.approx(high, abs=0.1)
    assert np.isfinite(_improvement(np.array([-1e6]))).all()


def test_values_are_levelled() -> None:
    """Mean 0 and spread 1; a failure counts as the worst score, and one wild value does not flatten the others."""
    rng = np.random.default_rng(0)
    level = _levelled([(1.0,), None, (3.0,), (2.0,), (-1e9,), (2.5,)], rng)
    assert level[1] == level[4] == min(level)
    assert level[2] - level[0] > 0.5
    assert _levelled([(5.0,), (5.0,)], rng).tolist() == [0.0, 0.0]
    assert len(_levelled([(1.0, 2.0), (2.0, 1.0), None], rng)) == 3


def test_the_limits_fit() -> None:
    """What is sure to be in view leaves room for a sample of the rest."""
    assert gp.BEST + gp.LAST < gp.LIMIT
