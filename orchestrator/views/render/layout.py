"""Lines for a terminal as pieces of text with a style each: how wide they are, and how they are folded, cut and drawn.

rich is not needed for any of it, and takes longer to load than a status takes to make.
"""

import itertools
import unicodedata
from collections.abc import Iterable, Sequence

from orchestrator.text import printable_lines

Span = tuple[str, str]
Line = Sequence[Span]


def plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def cells(line: Line) -> int:
    """How many columns it takes."""
    return sum(len(text) if text.isascii() else sum(map(_room, text)) for text, _ in line)


def _room(sign: str) -> int:
    if sign.isascii():
        return 1
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def wrapped(line: Line, width: int) -> list[Line]:
    """Where there is a wide gap, at it; else at a space, else in the middle of a word."""
    if cells(line) <= width:
        return [line]
    signs = [(sign, style) for text, style in line for sign in text]
    rows: list[Line] = []
    while signs:
        end = _fit(signs, width)
        if end < len(signs):
            spaces = [at for at in range(1, end + 1) if signs[at][0] == " "]
            gaps = [at for at in spaces if signs[at - 1][0] == " " and at > end // 2]
            end = (gaps or spaces or [end])[-1]
        rows.append(_joined(signs[:end]))
        while end < len(signs) and signs[end][0] == " ":
            end += 1
        signs = signs[end:]
    return [stripped(row) for row in rows]


def cut(line: Line, width: int) -> Line:
    """Its beginning, with a sign that there was more."""
    if cells(line) <= width:
        return line
    signs = [(sign, style) for text, style in line for sign in text]
    kept = signs[: _fit(signs, width - 1)]
    return _joined([*kept, ("…", kept[-1][1] if kept else "")])


def stripped(line: Line) -> Line:
    """Without spaces at its end."""
    left = list(line)
    while left and not left[-1][0].rstrip(" "):
        left.pop()
    return [*left[:-1], (left[-1][0].rstrip(" "), left[-1][1])] if left else []


def padded(line: Line, width: int) -> Line:
    return [*line, (" " * (width - cells(line)), "")]


def fitting(widest: Sequence[int], width: int, least: int = 6) -> list[int]:
    """Widths of columns that fit side by side: the widest gives way first."""
    widths = list(widest)
    while sum(widths) > width and max(widths) > least:
        widths[widths.index(max(widths))] -= 1
    return widths


def bar(used: int, held: int, limit: int, width: int, unicode: bool = True) -> Line:
    """A budget line: what is used, what is held for open work, what is left. Anything used fills at least one cell, and
    only all of it fills the last.
    """
    full, open_, empty = "█▒░" if unicode else "#=."
    limit = max(1, limit)
    first = _filled(used, limit, width)
    second = max(first, _filled(used + held, limit, width))
    over = used > limit
    return [
        (full * first, "red" if over else "green"),
        (open_ * (second - first), "yellow"),
        (empty * (width - second), "dim"),
    ]


def diff_lines(text: str) -> list[Line]:
    """Coloured like git does it, escaped. Inside a hunk the first character decides; a removed `-- x` is no header."""
    lines: list[Line] = []
    left = (0, 0)
    for line in printable_lines(text):
        if line.startswith("@@"):
            left = _sizes(line)
            lines.append([(line, "cyan")])
        elif any(left) and line[:1] in ("+", "-", " ", ""):
            left = (left[0] - (line[:1] != "+"), left[1] - (line[:1] != "-"))
            lines.append([(line, {"+": "green", "-": "red"}.get(line[:1], ""))])
        else:
            lines.append([(line, "bright_black" if line.startswith("\\") else "bold")])
    return lines


def _sizes(header: str) -> tuple[int, int]:
    """Old and new lines of a hunk, from `@@ -1,3 +1,4 @@`; the diff is our own canonical one."""
    ranges = header.split(" ")[1:3]
    counts = [int(part.partition(",")[2]) if part.partition(",")[2].isdigit() else 1 for part in ranges]
    return (counts[0], counts[1]) if len(counts) == 2 else (0, 0)


def _filled(units: int, limit: int, width: int) -> int:
    if units <= 0:
        return 0
    if units >= limit:
        return width
    return min(width - 1, max(1, units * width // limit))


def _fit(signs: Sequence[Span], width: int) -> int:
    """How many of them fit; at least one."""
    taken = itertools.accumulate(_room(sign) for sign, _ in signs)
    return max(1, sum(1 for _ in itertools.takewhile(lambda room: room <= width, taken)))


def _joined(signs: Iterable[Span]) -> Line:
    runs = itertools.groupby(signs, key=lambda sign: sign[1])
    return [("".join(sign for sign, _ in run), style) for style, run in runs]
