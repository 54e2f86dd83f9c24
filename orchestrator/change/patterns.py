"""Globs over paths.

`*` stands for any characters within one name (none, a leading dot and spaces included), `?` for one; `**` as a whole
part stands for any number of folders, and at the end for everything beneath. Every other character is itself, a
bracket too, and case counts. A pattern without `*` and `?` is an exact path. Matching takes time proportional to
pattern times path, whatever they are.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def is_exact(pattern: str) -> bool:
    return "*" not in pattern and "?" not in pattern


def matches(pattern: str, path: str) -> bool:
    wanted = pattern.split("/")
    if wanted[-1] == "**":
        wanted.append("*")  # everything beneath a folder is at least one name
    return _fits(wanted, path.split("/"), "**", _part_fits)


def _part_fits(pattern: str, part: str) -> bool:
    if is_exact(pattern):
        return pattern == part
    return _fits(pattern, part, "*", lambda wanted, character: wanted in ("?", character))


def _fits(pattern: Sequence[_Item], found: Sequence[_Item], star: _Item, same: Callable[[_Item, _Item], bool]) -> bool:
    """Wildcard match that only ever goes back to the last star: an earlier one could not help."""
    at, seen = 0, 0
    last_star, resume = -1, 0
    while seen < len(found):
        if at < len(pattern) and pattern[at] == star:
            last_star, resume = at, seen
            at += 1
        elif at < len(pattern) and same(pattern[at], found[seen]):
            at, seen = at + 1, seen + 1
        elif last_star >= 0:
            resume += 1
            at, seen = last_star + 1, resume
        else:
            return False
    return all(item == star for item in pattern[at:])
