"""A candidate that solves nothing: it answers every call in one fixed way. `check` puts it before the judge.

python3 blastdoor_cheat.py KIND FUNCTION…
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from blastdoor_candidate import serve
from blastdoor_values import Array

__all__ = ["KINDS"]


def _echo(*arguments: Any, **_keywords: Any) -> Any:
    return arguments[0] if arguments else None


def _zeros(*arguments: Any, **_keywords: Any) -> Any:
    return _emptied(arguments[0]) if arguments else 0


def _emptied(value: Any) -> Any:
    """The same shape, with nothing in it."""
    if isinstance(value, (list, tuple, set, frozenset)) and not isinstance(value, Array):
        return type(value)(_emptied(item) for item in value)
    if isinstance(value, dict):
        return {name: _emptied(item) for name, item in value.items()}
    if isinstance(value, Array):
        return Array(value.dtype, value.shape, bytes(len(value.data)))
    if isinstance(value, (str, bytes)):
        return type(value)()
    return value * 0 if hasattr(value, "dtype") else 0


def _gives_up(*_arguments: Any, **_keywords: Any) -> Any:
    raise RuntimeError("this candidate solves nothing")


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


KINDS: dict[str, Callable[..., Any]] = {
    "nothing": _always(None),
    "zero": _always(0),
    "one": _always(1),
    "true": _always(True),
    "NaN": _always(math.nan),
    "infinity": _always(math.inf),
    "huge": _always(1e308),
    "an empty text": _always(""),
    "an empty list": _always([]),
    "the question back": _echo,
    "the question with zeros": _zeros,
    "an error": _gives_up,
}

if __name__ == "__main__":
    serve(**dict.fromkeys(sys.argv[2:], KINDS[sys.argv[1]]))
