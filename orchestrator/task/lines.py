"""On which line a key of a TOML text stands. The standard parser does not tell.

Works on text that the standard parser has taken, so it need not understand values, only skip them. Keys inside an
inline table or a list are not looked for: they are told by the line where their table or list begins.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping

from orchestrator.task.errors import Key

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*""")
_PIECE = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{0,2})'''
    r"""|\'\'\'.*?\'\'\'(?:'{0,2})"""
    r"""|"(?:[^"\\]|\\.)*"|'[^']*'|\#[^\n]*|[\[\]{}\n]|[^"'\#\[\]{}\n]+""",
    re.DOTALL,
)


def key_lines(text: str) -> dict[Key, int]:
    """Key → line, counted from 1. An entry of an array of tables has its index in the key."""
    lines: dict[Key, int] = {(): 1}
    table: Key = ()
    arrays: dict[Key, int] = {}
    line, counted = 1, 0
    for offset, opening, keys in _statements(text):
        line, counted = line + text.count("\n", counted, offset), offset
        if opening:
            table = _indexed(keys[:-1], arrays) + keys[-1:]
        if opening == "[[":
            arrays[table] = arrays.get(table, -1) + 1
            table = (*table, arrays[table])
        key = table if opening else table + keys
        for length in range(1, len(key) + 1):
            lines.setdefault(key[:length], line)
        if opening:
            lines[key] = line
    return lines


def line_of(key: Key, lines: Mapping[Key, int]) -> int:
    """The line of the key, or of the nearest thing around it."""
    return next(lines[key[:length]] for length in range(len(key), -1, -1) if key[:length] in lines)


def _indexed(keys: Key, arrays: Mapping[Key, int]) -> Key:
    """A header names arrays of tables without their index: the latest entry is meant."""
    key: Key = ()
    for part in keys:
        key = (*key, part)
        if key in arrays:
            key = (*key, arrays[key])
    return key


def _statements(text: str) -> Iterator[tuple[int, str, Key]]:
    """Where each statement begins, `[` or `[[` if it is a header, and its keys."""
    at = _end(_BLANK, text, 0)
    while at < len(text):
        opening = "[[" if text.startswith("[[", at) else "[" if text[at] == "[" else ""
        keys, after = _dotted_key(text, at + len(opening))
        yield at, opening, keys
        at = _end(_BLANK, text, after + len(opening) if opening else _after_value(text, after + 1))


def _dotted_key(text: str, at: int) -> tuple[Key, int]:
    keys: list[str] = []
    while match := _KEY_PART.match(text, at):
        word = match[1]
        keys.append(tomllib.loads(f"x = {word}")["x"] if word[0] in "\"'" else word)
        at = match.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(keys), at


def _after_value(text: str, at: int) -> int:
    depth = 0
    while match := _PIECE.match(text, at):
        piece, at = match[0], match.end()
        if piece == "\n" and depth == 0:
            break
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
    return at


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
