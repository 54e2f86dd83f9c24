"""Sections as a Markdown document. Text of others is always code, which nothing in it can end, so no link, image,
heading or HTML of theirs is ever rendered; what is ours is escaped, so that a quote that was forgotten does not act.
"""

import re
from collections.abc import Iterable, Sequence

from orchestrator.text import printable, printable_lines, short
from orchestrator.views.render.chart import chart
from orchestrator.views.render.layout import plain
from orchestrator.views.render.model import (
    Block,
    Break,
    Facts,
    Figure,
    Gauge,
    Lines,
    Listing,
    Look,
    Own,
    Part,
    Prose,
    Quote,
    Section,
    Series,
    Table,
    Words,
    parts,
)

_LISTED = 400
_QUOTED = 2000
_CHART = (100, 24)


def document(sections: Sequence[Section]) -> str:
    """The first section is the head; those without a title are facts below it."""
    head, *rest = sections
    lines = [f"# {text(head.title)}", "", *_within(head)]
    listed = [section for section in rest if not section.title and section.brief]
    lines += [*(f"- **{escaped(section.label)}**: {text(section.brief)}" for section in listed), ""]
    for section in rest:
        if section.title and (within := _within(section)):
            lines += [f"## {text(section.title)}", "", *within]
    return "\n".join(lines)


def _within(section: Section) -> list[str]:
    said = section.line if section.line and not (section.body_says_all and section.body) else ""
    return [*([sentence(said), ""] if said else []), *blocks(section.body)]


def blocks(body: Iterable[Block]) -> list[str]:
    return [line for block in body for line in (*_block(block), "")]


def _block(block: Block) -> list[str]:
    match block:
        case Prose():
            return [sentence(block.words)]
        case Facts():
            return [f"- {_begun(escaped(name))}: {text(words)}" for name, words in block.rows]
        case Table():
            return table(map(text, block.columns), (map(text, row) for row in block.rows))
        case Lines():
            return [
                f"{f'{number}.' if block.numbered else '-'} {_begun(text(row))}"
                for number, row in enumerate(block.rows, 1)
            ]
        case Listing():
            return listing(block.text, block.language, _LISTED)
        case Series():
            width, height = _CHART
            return listing("\n".join(map(plain, chart(block, width=width, height=height))), "text")


def text(words: Words) -> str:
    """In one line."""
    return " ".join("".join(map(_part, parts(words))).split())


def sentence(words: Words) -> str:
    found = _begun(text(words))
    return f"{found[:1].upper()}{found[1:]}{'' if found.endswith(('.', ':')) else '.'}" if found else ""


def _begun(line: str) -> str:
    """As the beginning of a line, where it is no heading and no list."""
    return re.sub(r"^([#+=-])|^(\d+)(?=[.)](?:\s|$))", lambda it: f"\\{it[1]}" if it[1] else f"{it[2]}\\", line)


def _part(part: Part) -> str:
    match part:
        case str():
            return escaped(part)
        case Own() | Figure():
            return escaped(part.text)
        case Quote():
            return code(part.text, part.width or _QUOTED)
        case Look():
            return escaped(part.sign)
        case Break():
            return "; "
        case Gauge():
            return ""


def escaped(own: str) -> str:
    """Words of ours, in which no sign of Markdown acts."""
    return re.sub(r"([\\`*_\[\]<>|~&])", r"\\\1", printable(own))


def code(others: str, width: int = 200) -> str:
    """Inline, one short line; empty where there is none. It may stand in a table."""
    line = short(others, width)
    if not line:
        return ""
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def listing(others: str, language: str = "", most: int | None = None) -> list[str]:
    """Lines of a fenced block, cut to so many."""
    lines = list(printable_lines(others))
    left = len(lines) - most if most is not None and len(lines) > most else 0
    fence = "`" * max(3, _longest_run(others) + 1)
    more = ["", f"{left:,} lines more."] if left else []
    return [f"{fence}{language}", *lines[:most], fence, *more]


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Cells are ours, or have gone through `code`."""
    titles = list(header)
    return [_row(titles), _row(["---"] * len(titles)), *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(printable(cell) for cell in cells)} |"


def _longest_run(others: str) -> int:
    return max(map(len, re.findall("`+", others)), default=0)
