"""Words of a candidate, an agent or a judge, made fit for a person's eyes: nothing that moves a cursor, changes a
colour, turns the direction of writing or hides text. Escaping what is escaped already changes nothing.
"""

import re
from collections.abc import Iterator

SHOWN_CHARACTERS = 120

# They count as printable, but take no room on a screen while they carry text to a model.
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
# A letter with dozens of marks on it covers the lines above and below.
_PILED_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4,}")


def is_plain(text: str) -> bool:
    """Whether every character is seen for what it is."""
    return text.isprintable() and (text.isascii() or not (_FILLERS.search(text) or _PILED_MARKS.search(text)))


def printable(text: str | bytes, keep: str = "") -> str:
    """One line in which every other character is written as an escape; those in `keep` stay as they are.

    Bytes that are not UTF-8 show every byte above ASCII as an escape.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    if is_plain(text):
        return text
    text = _PILED_MARKS.sub(lambda marks: "".join(map(_escape, marks[0])), text)
    return "".join(one if one in keep or is_plain(one) else _escape(one) for one in text)


def short(text: str | bytes, width: int) -> str:
    """Printable, with its white space made single, and cut to so many characters."""
    whole = printable(" ".join(text.split()) if isinstance(text, str) else text)
    return whole if len(whole) <= width else whole[: max(0, width - 1)] + "…"


def shown(text: str | bytes, limit: int = SHOWN_CHARACTERS) -> str:
    """A name or a few words of others in one short line, and how much more there was. What is escaped takes room as
    well: a name of control characters is ten times as long.
    """
    whole = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    told, room, is_piled = [], limit, bool(_PILED_MARKS.search(whole))
    for one in whole[:limit]:
        escaped = one if is_plain(one) and not (is_piled and _PILED_MARKS.match(one * 4)) else _escape(one)
        room -= len(escaped)
        if room < 0:
            break
        told.append(escaped)
    more = len(whole) - len(told)
    return "".join(told) + (f"… ({more:,} more)" if more else "")


def printable_lines(data: str | bytes, keep: str = "\t") -> Iterator[str]:
    """Line by line; only a newline ends one, so that no other character can pretend to."""
    if isinstance(data, bytes):
        data = _decoded(data)
    lines = data.split("\n")
    if not lines[-1]:
        lines.pop()
    return (printable(line.removesuffix("\r"), keep) for line in lines)


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("ascii", "backslashreplace")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
