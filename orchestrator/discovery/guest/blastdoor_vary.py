"""New questions from old ones: arguments of recorded calls, crossed, changed and made longer. Standard library only,
Python 3.9 up. Types stay; whether a function takes what comes out, only the function can say.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

__all__ = ["Varied"]

_LONGEST = 1 << 15


class Varied:
    """`calls` gives a fresh copy of the arguments and keywords of a call, by its number."""

    def __init__(self, calls: Callable[[int], tuple[list[Any], dict[str, Any]]], count: int, seed: int) -> None:
        self._calls = calls
        self._count = count
        self._rng = random.Random(seed)  # noqa: S311  # drawn for a search, not for a secret

    def draw(self) -> tuple[list[Any], dict[str, Any]]:
        rng = self._rng
        arguments, keywords = self._other()
        for at in range(len(arguments)):
            if rng.random() < 0.4:
                others = self._other()[0]
                if at < len(others) and type(others[at]) is type(arguments[at]):
                    arguments[at] = others[at]
            if rng.random() < 0.6:
                arguments[at] = self._changed(arguments[at], self._like(at, arguments[at]), 3)
        for name in keywords:
            if rng.random() < 0.3:
                keywords[name] = self._changed(keywords[name], keywords[name], 3)
        return arguments, keywords

    def _other(self) -> tuple[list[Any], dict[str, Any]]:
        return self._calls(self._rng.randrange(self._count))

    def _like(self, at: int, value: Any) -> Any:
        others = self._other()[0]
        return others[at] if at < len(others) and type(others[at]) is type(value) else value

    def _changed(self, value: Any, other: Any, depth: int) -> Any:
        kind = type(value)
        if kind is int:
            return self._number(value)
        if kind is float:
            return value * self._rng.uniform(0.5, 2.0) if value else self._rng.uniform(-1.0, 1.0)
        if kind in (str, bytes):
            return self._text(value, other)
        if kind in (list, tuple):
            return kind(self._items(list(value), list(other), depth))
        if kind in (set, frozenset):
            return kind(self._rng.sample(list(value), self._rng.randint(min(1, len(value)), len(value))))
        if kind is dict and value and depth:
            name = self._rng.choice(list(value))
            return {**value, name: self._changed(value[name], value[name], depth - 1)}
        if kind.__module__ == "numpy" and getattr(value, "ndim", None):
            order = list(range(len(value)))
            self._rng.shuffle(order)
            return value[order] if value.dtype.kind != "f" else value[order] * self._rng.uniform(0.5, 2.0)
        return value

    def _number(self, value: int) -> int:
        far = max(1, abs(value) // 2)
        found = value + self._rng.randint(-far, far)
        return abs(found) if value >= 0 else found

    def _text(self, value: Any, other: Any) -> Any:
        rng, space = self._rng, value[:0] + (" " if isinstance(value, str) else b" ")
        way = rng.randrange(5)
        if way == 0 and len(value) > 1:
            first = rng.randrange(len(value))
            return value[first : rng.randint(first + 1, len(value))]
        if way == 1:
            words = value.split(space)
            rng.shuffle(words)
            return space.join(words)
        if way == 2 and len(value) > 1:
            at, taken = rng.randrange(len(value)), rng.randrange(len(value))
            return value[:at] + value[taken : taken + 1] + value[at + 1 :]
        longer = value + (space if rng.random() < 0.5 else value[:0]) + other
        return self._longer(longer)

    def _items(self, value: list[Any], other: list[Any], depth: int) -> list[Any]:
        rng = self._rng
        way = rng.randrange(5)
        if way == 0 and len(value) > 1:
            return rng.sample(value, rng.randint(1, len(value)))
        if way == 1:
            rng.shuffle(value)
            return value
        if way == 2 and value and depth:
            at = rng.randrange(len(value))
            value[at] = self._changed(value[at], rng.choice(other or value), depth - 1)
            return value
        if way == 3 and depth:
            return [self._changed(it, it, depth - 1) if rng.random() < 0.5 else it for it in value]
        return list(self._longer(value + other))

    def _longer(self, value: Any) -> Any:
        times = 1 << self._rng.randrange(5)
        return value * times if len(value) * times <= _LONGEST else value
