"""A Gaussian process: Matérn 5/2 with a length of its own for every column, fitted to what is most likely.

Priors are those of Optuna's sampler. Two rows are 0 apart in a column of choices where they are equal, and 1 where
not. Numpy is all that it needs, for a few hundred rows at most.
"""

import math

import numpy as np

from orchestrator.proposers.samplers.box import Array

ROUNDS = 30
STARTS = (0.0, 2.0)  # how much a column counts, as a logarithm: smooth, and less so
BOUND = 9.0
_ROOT5 = math.sqrt(5)


class Gaussian:
    """Of values with a mean near 0 and a spread near 1."""

    def __init__(self, rows: Array, values: Array, choices: Array) -> None:
        self._rows, self._choices = rows, choices
        self._apart = np.stack([_apart(rows[:, at], rows[:, at], choices[at]) for at in range(rows.shape[1])])
        self._logs = max((self._climb(values, start) for start in STARTS), key=lambda it: it[0])[1]
        self._settle(values)

    def believe(self, rows: Array) -> None:
        """Take for granted what is expected there."""
        values = np.concatenate([self._values, self.predict(rows)[0]])
        self._rows = np.concatenate([self._rows, rows])
        self._apart = np.stack(
            [_apart(self._rows[:, at], self._rows[:, at], self._choices[at]) for at in range(self._rows.shape[1])]
        )
        self._settle(values)

    def predict(self, rows: Array) -> tuple[Array, Array]:
        """Mean and spread of the function at each of them."""
        weights, scale, _ = _parts(self._logs)
        squared = np.zeros((len(rows), len(self._rows)))
        for at, weight in enumerate(weights):
            squared += weight * _apart(rows[:, at], self._rows[:, at], self._choices[at])
        cross = scale * _matern(squared)
        left = scale - np.einsum("ij,jk,ik->i", cross, self._inverse, cross, optimize=True)
        return cross @ self._solved, np.sqrt(np.maximum(left, 1e-12))

    def _settle(self, values: Array) -> None:
        self._values = values
        self._inverse = np.linalg.inv(self._covariance(self._logs)[0])
        self._solved = self._inverse @ values

    def _covariance(self, logs: Array) -> tuple[Array, Array]:
        """The matrix, and the squared distances that it is made of."""
        weights, scale, noise = _parts(logs)
        squared = np.tensordot(weights, self._apart, axes=1)
        return scale * _matern(squared) + noise * np.eye(len(squared)), squared

    def _climb(self, values: Array, start: float) -> tuple[float, Array]:
        """Uphill in steps that grow while a direction holds and shrink where it turns (Rprop)."""
        logs = np.array([*[start] * self._rows.shape[1], 0.0, math.log(1e-3)])
        step, before = np.full(len(logs), 0.3), np.zeros(len(logs))
        best, found = -math.inf, logs
        for _ in range(ROUNDS):
            height, slope = self._likelihood(logs, values)
            if height > best:
                best, found = height, logs
            same = slope * before
            step = np.clip(np.where(same > 0, step * 1.3, np.where(same < 0, step * 0.5, step)), 1e-3, 1.0)
            before = np.where(same < 0, 0.0, slope)
            logs = np.clip(logs + np.sign(before) * step, -BOUND, BOUND)
        return best, found

    def _likelihood(self, logs: Array, values: Array) -> tuple[float, Array]:
        """Logarithm of the posterior of the logarithms, and its slope."""
        weights, scale, noise = _parts(logs)
        covariance, squared = self._covariance(logs)
        lower = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(covariance)
        solved = inverse @ values
        height = float(-0.5 * values @ solved - np.log(np.diag(lower)).sum())
        # The slope by a number is half the sum of this, times the covariance's own slope by it.
        pull = np.outer(solved, solved) - inverse
        root = _ROOT5 * np.sqrt(squared)
        by_squared = -5 / 6 * scale * (1 + root) * np.exp(-root)
        slope = np.concatenate(
            [
                0.5 * weights * np.tensordot(self._apart, pull * by_squared, axes=2),
                [0.5 * scale * np.sum(pull * _matern(squared)), 0.5 * noise * np.trace(pull)],
            ]
        )
        prior, prior_slope = _prior(weights, scale, noise)
        return height + prior, slope + prior_slope


def _parts(logs: Array) -> tuple[Array, float, float]:
    """How much each column counts, the scale of the function and the noise; never none of it, or nothing is stable."""
    return np.exp(logs[:-2]), math.exp(logs[-2]), math.exp(logs[-1]) + 1e-6


def _prior(weights: Array, scale: float, noise: float) -> tuple[float, Array]:
    height = float(-0.1 * (1 / weights + weights).sum()) + math.log(scale) - scale + 0.1 * math.log(noise) - 30 * noise
    return height, np.concatenate([0.1 * (1 / weights - weights), [1 - scale, 0.1 - 30 * noise]])


def _apart(some: Array, others: Array, choice: float) -> Array:
    between: Array = some[:, None] - others[None, :]
    return np.where(between == 0, 0.0, 1.0) if choice else np.square(between)


def _matern(squared: Array) -> Array:
    root = _ROOT5 * np.sqrt(squared)
    matern: Array = (1 + root + 5 / 3 * squared) * np.exp(-root)
    return matern
