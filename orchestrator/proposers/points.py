"""All points of a space, counted and numbered without a list of them.

Parameters that no condition links multiply. Where one decides about others, its values are gone through in order; those
that decide alike stand together as one stretch, however many they are. What is left at each is a smaller space of the
same kind, and what was counted once is kept.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.domain.proposal import Value
from orchestrator.task import Parameter, in_order, needs_of
from orchestrator.task.conditions import is_in

Point = dict[str, Value]
# A parameter and the others that still decide about it.
_Open = tuple[str, tuple[str, ...]]

MOST_PARTS = 2_000


@dataclass(frozen=True)
class _Stretch:
    """`length` values from `first` on, each with the same `rest`, of which there are `each`."""

    first: int
    length: int
    rest: tuple[tuple[_Open, ...], ...]
    each: int


class Points:
    """Every combination of values that can be there, once; the last parameter runs fastest.

    Raises ValueError where conditions are so entangled that counting would take too long.
    """

    def __init__(self, space: Mapping[str, Parameter], values: Mapping[str, Sequence[Value]]) -> None:
        self._names = list(space)
        self._place = {name: place for place, name in enumerate(in_order(space))}
        self._values = values
        self._needs = needs_of(space)
        self._stretches: dict[tuple[_Open, ...], list[_Stretch]] = {}
        self._whole = self._parted([(name, tuple(self._needs[name])) for name in space])
        self.size = self._count(self._whole)

    def at(self, index: int) -> Point:
        point: Point = {}
        self._fill(point, self._whole, index)
        return {name: point[name] for name in self._names if name in point}

    def _fill(self, point: Point, parts: Sequence[tuple[_Open, ...]], index: int) -> None:
        for part in reversed(parts):
            index, within = divmod(index, self._count([part]))
            for stretch in self._of(part):
                if within < stretch.length * stretch.each:
                    place, rest = divmod(within, stretch.each)
                    name = self._first(part)
                    point[name] = self._values[name][stretch.first + place]
                    self._fill(point, stretch.rest, rest)
                    break
                within -= stretch.length * stretch.each

    def _count(self, parts: Sequence[tuple[_Open, ...]]) -> int:
        return math.prod(sum(it.length * it.each for it in self._of(part)) for part in parts)

    def _of(self, part: tuple[_Open, ...]) -> list[_Stretch]:
        if part not in self._stretches:
            if len(self._stretches) > MOST_PARTS:
                raise ValueError("the conditions of the space are too entangled to count its points; use fewer")
            name = self._first(part)
            self._stretches[part] = [
                _Stretch(first, length, rest := self._left(part, name, self._values[name][first]), self._count(rest))
                for first, length in self._alike(part, name)
            ]
        return self._stretches[part]

    def _first(self, part: tuple[_Open, ...]) -> str:
        """One about which nothing is left to decide; there is one, since nothing goes in a circle."""
        return min((name for name, open_ in part if not open_), key=self._place.__getitem__)

    def _alike(self, part: tuple[_Open, ...], name: str) -> list[tuple[int, int]]:
        """First place and length of the stretches of a parameter's values: one for each that a condition names."""
        values = self._values[name]
        named = {it for other, open_ in part if name in open_ for it in _places(values, self._needs[other][name])}
        edges = sorted({0, len(values), *named, *(place + 1 for place in named)})
        return [(low, high - low) for low, high in pairwise(edges)]

    def _left(self, part: tuple[_Open, ...], name: str, value: Value) -> tuple[tuple[_Open, ...], ...]:
        """What is open once this parameter has that value."""
        left = []
        for other, open_ in part:
            if name in open_ and is_in(value, self._needs[other][name]):
                left.append((other, tuple(it for it in open_ if it != name)))
            elif name not in open_ and other != name:
                left.append((other, open_))
        return self._parted(left)

    def _parted(self, some: Sequence[_Open]) -> tuple[tuple[_Open, ...], ...]:
        """Those that a condition links stand together; the others on their own."""
        groups: list[tuple[set[str], list[_Open]]] = []
        for entry in some:
            linked = [group for group in groups if group[0] & {entry[0], *entry[1]}]
            names, entries = {entry[0], *entry[1]}, [entry]
            for group in linked:
                names |= group[0]
                entries += group[1]
                groups.remove(group)
            groups.append((names, entries))
        in_place = [tuple(sorted(entries, key=lambda it: self._place[it[0]])) for _, entries in groups]
        return tuple(sorted(in_place, key=lambda part: self._place[part[0][0]]))


def _places(values: Sequence[Value], named: Sequence[Value]) -> list[int]:
    if isinstance(values, range):
        return [values.index(it) for it in named if isinstance(it, int) and it in values]
    return [place for place, value in enumerate(values) if is_in(value, named)]


def key_of(point: Mapping[str, Value]) -> str:
    """1, 1.0 and true are three values, as they are in the file."""
    return json.dumps(point, sort_keys=True)
