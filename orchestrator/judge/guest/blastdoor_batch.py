"""Serves one function of a package to a judge that asks many questions at a time. Standard library only, Python 3.9 up.

    python3 -m blastdoor_batch package.module function

The judge calls `each` with a list of questions, each a list of arguments and a table of keywords, and gets a list of
answers: true and the value, or false and the name of the error. So a function that takes microseconds is timed over
many calls, and the way to the other chamber counts once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from blastdoor_candidate import serve_loaded
from blastdoor_kinds import error_name

__all__ = ["found", "one"]


def found(module: str, name: str) -> Callable[..., Any]:
    """The function of this dotted name."""
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    function: Callable[..., Any] = value
    return function


def one(function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
    """An answer: an error of the function is one, too."""
    try:
        return [True, function(*arguments, **keywords)]
    except Exception as error:  # noqa: BLE001  whatever it is, its name is the answer
        return [False, error_name(error)]


def _load(module: str, name: str) -> dict[str, Callable[..., Any]]:
    function = found(module, name)
    return {"each": lambda questions: [one(function, *it) for it in questions]}


def _main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        sys.stderr.write("usage: python3 -m blastdoor_batch MODULE FUNCTION\n")
        return 2
    sys.argv = [arguments[0]]
    serve_loaded(lambda: _load(*arguments))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
