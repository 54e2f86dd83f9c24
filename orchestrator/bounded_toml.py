"""TOML as the standard parser reads it, but for keys of so many parts that it works with the square of them."""

import re
import tomllib
from typing import Any

MOST_PARTS = 32

# A string is one mark, so that a dot in it counts for nothing; dots of one key have nothing but its parts between them.
_MARK = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|[^\s.\"'#\[\]{},=]++"
    r"|\."
    r"|[ \t]++"
    r"|.",
    re.DOTALL,
)
_BETWEEN = re.compile(r"""["'A-Za-z0-9_ \t-]""")


def loads(text: str) -> dict[str, Any]:
    """Raises ValueError, whose text ends with the place, and RecursionError, both as the parser does."""
    _refuse_long_keys(text)
    return tomllib.loads(text)


def _refuse_long_keys(text: str) -> None:
    if text.count(".") < MOST_PARTS:
        return
    dots = 0
    for mark in _MARK.finditer(text):
        first = mark[0][0]
        dots = dots + 1 if first == "." else dots if _BETWEEN.match(first) else 0
        if dots >= MOST_PARTS:
            at = mark.start()
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            raise ValueError(f"A key of more than {MOST_PARTS} parts (at line {line}, column {column})")
