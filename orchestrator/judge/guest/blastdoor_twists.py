"""An honest answer, twisted: other numbers in it, or other members of its lists. Standard library only, Python 3.9 up.

The orchestrator twists files with it, and a cheat in the place of a candidate twists what the candidate answers. What a
judge should not fall for is the same in both places.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "FILLS",
    "MOST_NUMBERS",
    "PICKS",
    "claimed",
    "field_names",
    "has_both",
    "picked",
    "place_names",
    "refilled",
    "with_field",
]

# From a number's old value and its place in the innermost list or row to its new value, as JSON would hold it.
Fill = Callable[[float, int], object]
# From the length of a list to the places of the members that it has instead.
Pick = Callable[[int], Sequence[int]]

MOST_NUMBERS = 10_000
_MOST_MEMBERS = 100_000
_LARGE = 1e9
_PLACE = "place "

FILLS: dict[str, Fill] = {
    "NaN": lambda _old, _place: math.nan,
    "NaN first, the rest large": lambda _old, place: _LARGE if place else math.nan,
    "NaN twice, the rest large": lambda _old, place: _LARGE if place > 1 else math.nan,
    "NaN twice, the rest doubled": lambda old, place: 2 * old if place > 1 else math.nan,
    "NaN but the first": lambda old, place: math.nan if place else old,
    "infinity": lambda _old, _place: math.inf,
    "minus infinity": lambda _old, _place: -math.inf,
    "huge": lambda _old, _place: 1e308,
    "huge, negative": lambda _old, _place: -1e308,
    "an integer of 401 digits": lambda _old, _place: 10**400,
    "large": lambda _old, _place: _LARGE,
    "large, negative": lambda _old, _place: -_LARGE,
    "a thousand times as much": lambda old, _place: 1000 * old,
    "the other sign": lambda old, _place: -old,
    "zeros": lambda _old, _place: 0,
    "ones": lambda _old, _place: 1,
    "tiny": lambda _old, _place: 5e-324,
    "texts for numbers": lambda _old, _place: "nan",
    "infinity as text": lambda _old, _place: "inf",
    "lists for numbers": lambda _old, _place: [],
    "booleans for numbers": lambda _old, _place: True,
    "nothing for numbers": lambda _old, _place: None,
    "nothing but the first": lambda old, place: None if place else old,
}

PICKS: dict[str, Pick] = {
    "none": lambda _many: (),
    "only the first": lambda _many: (0,),
    "only the last": lambda many: (many - 1,),
    "only the middle": lambda many: (many // 2,),
    "the first half": lambda many: range(max(1, many // 2)),
    "every second": lambda many: range(0, many, 2),
    "all but the last": lambda many: range(max(1, many - 1)),
    "the first for all": lambda many: (0,) * many,
    "the last for all": lambda many: (many - 1,) * many,
    "all twice": lambda many: (*range(many), *range(many)),
    "all ten times": lambda many: tuple(range(many)) * 10,
    "reversed": lambda many: range(many - 1, -1, -1),
}


def refilled(value: Any, fill: Fill, kind: type | None = None, most: int = MOST_NUMBERS) -> Any:
    """The same with other numbers, at most so many; `kind` is int or float where only these are replaced."""
    return _Refill(fill, kind, most).value(value)


class _Refill:
    """Counts what it replaces, so that a cheat stays small."""

    def __init__(self, fill: Fill, kind: type | None, most: int) -> None:
        self._fill = fill
        self._kind = kind
        self._left = most

    def value(self, value: Any, place: int = 0) -> Any:
        if isinstance(value, dict):
            return {key: self.value(member, at) for at, (key, member) in enumerate(value.items())}
        if isinstance(value, list) or type(value) is tuple:
            return type(value)(self.value(member, at) for at, member in enumerate(value))
        if isinstance(value, (set, frozenset)):
            return [self.value(member, at) for at, member in enumerate(value)]
        if hasattr(value, "tolist"):
            return self._array(value)
        if type(value) not in (int, float) or (self._kind and type(value) is not self._kind) or not self._left:
            return value
        self._left -= 1
        return self._fill(value, place)

    def _array(self, value: Any) -> Any:
        """Of numbers again where they are some: a judge that looks at the type first should see the right one."""
        new = self.value(value.tolist())
        asarray = getattr(value, "__array__", None)
        if asarray is None:
            return new
        try:
            made = asarray().astype(float, copy=True)
            made[...] = new
        except (TypeError, ValueError, OverflowError):
            return new
        return made


def has_both(value: Any) -> bool:
    """Whether there are whole numbers and fractions in it: the whole ones may be names and counts."""
    found: set[type] = set()
    refilled(value, lambda old, _place: found.add(type(old)))
    return len(found) == 2


def picked(value: Any, pick: Pick) -> Any:
    """The same with other members in its outermost lists. Where there is no list, members of objects are dropped, and a
    text alone is cut.
    """
    if isinstance(value, str):
        return "".join(value[at] for at in _places(pick, len(value)))
    if isinstance(value, dict) and not _holds_list(value):
        names = list(value)
        return {names[at]: value[names[at]] for at in _places(pick, len(names))}
    return _picked(value, pick)


def _picked(value: Any, pick: Pick) -> Any:
    if isinstance(value, dict):
        return {key: _picked(member, pick) for key, member in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return type(value)(value[at] for at in _places(pick, len(value)))
    if isinstance(value, (set, frozenset)):
        members = list(value)
        return type(value)(members[at] for at in _places(pick, len(members)))
    if hasattr(value, "tolist"):
        rows = value.tolist()
        if not isinstance(rows, list):
            return value
        places = list(_places(pick, len(rows)))
        return value[places] if hasattr(value, "__array__") else [rows[at] for at in places]
    return value


def _places(pick: Pick, many: int) -> Sequence[int]:
    return pick(many)[:_MOST_MEMBERS] if many else ()


def _holds_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_list, value.values()))
    return isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist")


def claimed(value: Any, claims: dict[str, Any]) -> Any:
    """The same with more members, if it is an object, or several values with objects among them."""
    if type(value) is tuple:
        return tuple({**it, **claims} if isinstance(it, dict) else it for it in value)
    return {**value, **claims} if isinstance(value, dict) else value


def field_names(value: Any, most: int = 8) -> list[str]:
    """Names of members that hold a number or a truth value, in the order in which they come. Where a function gives
    several values, a number beside something else is taken for a figure, too, and its place is its name.
    """
    found: dict[str, None] = {}

    def look(it: Any) -> None:
        if isinstance(it, dict):
            for name, member in it.items():
                if isinstance(member, numbers.Real) and type(name) is str:
                    found[name] = None
                look(member)
        elif isinstance(it, (list, tuple)):
            for member in it[:100]:
                look(member)

    look(value)
    places = place_names(value)
    return [*(places if places and len(places) < len(value) else []), *found][:most]


def place_names(value: Any) -> list[str]:
    """The places of numbers among several values that a function gives."""
    values = value if type(value) is tuple and len(value) > 1 else ()
    return [f"{_PLACE}{at}" for at, it in enumerate(values, 1) if isinstance(it, numbers.Real)]


def with_field(value: Any, name: str, new: Any) -> Any:
    """The same with another value for every member of this name, or for the one at this place."""
    if name in place_names(value):
        at = int(name[len(_PLACE) :]) - 1
        return (*value[:at], new, *value[at + 1 :])
    if isinstance(value, dict):
        return {key: new if key == name else with_field(member, name, new) for key, member in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return type(value)(with_field(member, name, new) for member in value)
    return value
