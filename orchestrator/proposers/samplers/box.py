"""A space as columns of numbers: what is a number lies from 0 to 1, what is a choice is the number of its value."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point
from orchestrator.proposers.samplers.scale import from_unit, to_unit
from orchestrator.proposers.space import every_int
from orchestrator.task import Bool, Choice, Float, Int, Parameter, in_order, is_there, needs_of
from orchestrator.task.conditions import is_in

Array = NDArray[np.float64]

MIDDLE, NO_CHOICE = 0.5, -1.0
CHANGED = 0.3


class Box:
    """`choices` says how many values each column's choice has, and 0 for a number.

    A row has a value in every column; `seen` puts a fixed one where the parameter is not there.
    """

    def __init__(self, space: Mapping[str, Parameter]) -> None:
        self._space, self._order = space, in_order(space)
        column = {name: at for at, name in enumerate(space)}
        self._column = column
        self.choices = np.array([len(_listed(it)) for it in space.values()])
        self._steps = np.array([len(every_int(it)) - 1 if isinstance(it, Int) else 0 for it in space.values()])
        self._missing = np.where(self.choices > 0, NO_CHOICE, MIDDLE)
        self._needs = [
            (
                column[name],
                [(column[other], [_code(space[other], it) for it in values]) for other, values in asked.items()],
            )
            for name, asked in needs_of(space).items()
            if asked
        ]

    def rows(self, points: Sequence[Mapping[str, Value]]) -> Array:
        rows = np.tile(self._missing, (len(points), 1))
        for row, point in zip(rows, points, strict=True):
            for name, value in point.items():
                row[self._column[name]] = _code(self._space[name], value)
        return rows

    def drawn(self, count: int, rng: np.random.Generator) -> Array:
        shares = rng.random((count, len(self._space)))
        return self.stepped(np.where(self.choices > 0, np.floor(shares * self.choices), shares))

    def moved(self, rows: Array, reach: float, rng: np.random.Generator) -> Array:
        """Some columns of each row changed: a number by about `reach`, an int by a step at least, a choice to any."""
        changed = rng.random(rows.shape) < CHANGED
        changed[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = True
        reaches = np.where(self._steps > 0, np.maximum(reach, 0.6 / np.maximum(1, self._steps)), reach)
        numbers = np.clip(rows + rng.normal(size=rows.shape) * reaches, 0.0, 1.0)
        others = np.floor(rng.random(rows.shape) * self.choices)
        # What was not there may be now, so it needs a value in any case.
        changed |= rows == NO_CHOICE
        return self.stepped(np.where(changed, np.where(self.choices > 0, others, numbers), rows))

    def seen(self, rows: Array) -> Array:
        """Rows that differ only in what is not there become the same."""
        seen = rows.copy()
        for at, asked in self._needs:
            there = np.all([np.isin(rows[:, of], codes) for of, codes in asked], axis=0)
            seen[~there, at] = self._missing[at]
        return seen

    def point(self, row: Array) -> Point:
        point: Point = {}
        for name in self._order:
            if is_there(self._space[name], point):
                point[name] = _value(self._space[name], float(row[self._column[name]]))
        return {name: point[name] for name in self._space if name in point}

    def stepped(self, rows: Array) -> Array:
        steps = np.maximum(1, self._steps)
        return np.where(self._steps > 0, np.round(rows * steps) / steps, rows)


def _listed(parameter: Parameter) -> Sequence[Value]:
    if isinstance(parameter, Choice):
        return parameter.values
    return (False, True) if isinstance(parameter, Bool) else ()


def _code(parameter: Parameter, value: Value) -> float:
    if isinstance(parameter, Int | Float):
        return to_unit(parameter, value)
    return float(next(at for at, it in enumerate(_listed(parameter)) if is_in(value, (it,))))


def _value(parameter: Parameter, code: float) -> Value:
    if isinstance(parameter, Int | Float):
        return from_unit(parameter, code)
    return _listed(parameter)[int(code)]
