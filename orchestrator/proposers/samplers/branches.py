"""Which branches of a conditional space are used up: a model must leave them, however good they were.

A branch is all that is left to choose once every parameter that others depend on has a value. A choice whose value has
no further parameters is a branch of one point. Points are counted, not listed, and only where few enough are there.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point, Points, key_of
from orchestrator.proposers.space import listed
from orchestrator.task import Parameter, needs_of

_ENDLESS = 2**40  # values of a real number: more than anybody tries


@dataclass(frozen=True)
class UsedUp:
    """The branches without a point left, by their keys, and the values that occur in no other branch."""

    branches: frozenset[str] = frozenset()
    values: Mapping[str, Set[str]] = field(default_factory=dict, compare=False)


class Branches:
    """Told every point that was tried. Counting costs nothing where each branch has a real number in it."""

    def __init__(self, space: Mapping[str, Parameter]) -> None:
        self._space = space
        self._deciding = [name for name in space if any(name in it.when for it in space.values())]
        self._values = {name: listed(it) or range(_ENDLESS) for name, it in space.items()}
        self._needs = needs_of(space)
        self._least = math.prod(
            len(self._values[name]) for name, it in space.items() if not it.when and name not in self._deciding
        )
        self._rooms: dict[str, int] = {}
        self._points: set[str] = set()
        self._used: Counter[str] = Counter()
        self._used_up = UsedUp()

    def of(self, point: Mapping[str, Value]) -> str:
        return key_of(self._branch(point))

    def add(self, point: Mapping[str, Value]) -> None:
        key = key_of(point)
        if not self._deciding or key in self._points:
            return
        self._points.add(key)
        branch = self._branch(point)
        self._used.update(key_of(part) for part in _parts(branch))
        self._used_up = self._with([branch], Counter())

    def used_up(self, running: Iterable[Mapping[str, Value]] = ()) -> UsedUp:
        """What runs is taken for tried: it would not be proposed again."""
        others = {key: it for it in running if (key := key_of(it)) not in self._points} if self._deciding else {}
        branches = [self._branch(it) for it in others.values()]
        return self._with(branches, Counter(key_of(part) for branch in branches for part in _parts(branch)))

    def _with(self, branches: Sequence[Point], more: Counter[str]) -> UsedUp:
        """Those of the branches that are full beside what is used up already. A value is gone with its last branch."""
        full = [it for it in branches if self._is_full(it, more)]
        if not full:
            return self._used_up
        gone = {name: set(keys) for name, keys in self._used_up.values.items()}
        for branch in full:
            for name, value in branch.items():
                if self._is_full({name: value}, more):
                    gone.setdefault(name, set()).add(key_of({name: value}))
        return UsedUp(self._used_up.branches | {key_of(it) for it in full}, gone)

    def _branch(self, point: Mapping[str, Value]) -> Point:
        return {name: point[name] for name in self._deciding if name in point}

    def _is_full(self, fixed: Point, more: Counter[str]) -> bool:
        key = key_of(fixed)
        used = self._used[key] + more[key]
        return used >= self._least and used >= self._room(key, fixed)

    def _room(self, key: str, fixed: Point) -> int:
        """How many points have these values. What a value needs of others stands fixed as well."""
        if key not in self._rooms:
            values: dict[str, Sequence[Value]] = dict(self._values)
            for name in fixed:
                for other, allowed in self._needs[name].items():
                    keys = {key_of({other: it}) for it in allowed}
                    values[other] = [it for it in _few(values[other], allowed) if key_of({other: it}) in keys]
            values |= {name: [value] for name, value in fixed.items()}
            try:
                self._rooms[key] = Points(self._space, values).size
            except ValueError:  # too entangled to be counted, so there are many
                self._rooms[key] = _ENDLESS
        return self._rooms[key]


def _parts(branch: Point) -> list[Point]:
    """The branch, and each of its values alone; once where that is the same."""
    alone: list[Point] = [{name: value} for name, value in branch.items()]
    return alone if len(branch) == 1 else [branch, *alone]


def _few(values: Sequence[Value], allowed: Sequence[Value]) -> Sequence[Value]:
    """An int may have more values than anybody can go through; a condition lists those that it allows."""
    return allowed if isinstance(values, range) else values
