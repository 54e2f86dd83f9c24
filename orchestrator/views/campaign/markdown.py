"""Text of others inside a Markdown document: always code, which nothing in it can end, so no link, image, heading or
HTML of theirs is ever rendered.
"""

import re
from collections.abc import Iterable, Sequence

from orchestrator.text import printable, printable_lines, short


def code(text: str, width: int = 200) -> str:
    """Inline, one short line; empty where there is none. It may stand in a table."""
    line = short(text, width)
    if not line:
        return ""
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def block(text: str, language: str = "", most: int | None = None) -> list[str]:
    """Lines of a fenced block, cut to so many."""
    lines = list(printable_lines(text))
    left = len(lines) - most if most is not None and len(lines) > most else 0
    fence = "`" * max(3, _longest_run(text) + 1)
    more = ["", f"{left:,} lines more."] if left else []
    return [f"{fence}{language}", *lines[:most], fence, *more]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Cells are ours, or have gone through `code`."""
    return [_row(header), _row(["---"] * len(header)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(printable(cell) for cell in cells)} |"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
