"""Sections as plain values for those that draw them elsewhere, a page or a file: words with their styles, in lists.

Words of others are made harmless to the eye here; what draws them puts them down as text and never as markup.
"""

from collections.abc import Iterable
from typing import Any

from orchestrator.text import printable, printable_lines, short
from orchestrator.views.render.data import series_record
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

# What is longer is told to be, and is found elsewhere.
MOST_ROWS = 500
MOST_LINES = 2000
_QUOTED = 20_000

Value = str | dict[str, Any]


def section_values(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Those that have something to say, in their order."""
    made = [_section(section) for section in sections]
    return [it for it in made if it["line"] or it["blocks"]]


def _section(section: Section) -> dict[str, Any]:
    said = () if section.body_says_all and section.body else section.line or ()
    return {
        "key": section.key,
        "title": words_values(section.title or section.label.replace("_", " ")),
        "line": words_values(said),
        "blocks": [_block(block) for block in section.body],
    }


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Prose():
            return {"kind": "prose", "words": words_values(block.words)}
        case Facts():
            return {"kind": "facts", "rows": [[printable(name), words_values(words)] for name, words in block.rows]}
        case Table():
            rows = [[words_values(cell) for cell in row] for row in block.rows[:MOST_ROWS]]
            columns = [words_values(column) for column in block.columns]
            return {"kind": "table", "columns": columns, "rows": rows, "more": max(0, len(block.rows) - MOST_ROWS)}
        case Lines():
            told = [words_values(row) for row in block.rows[:MOST_ROWS]]
            more = max(0, len(block.rows) - MOST_ROWS)
            return {"kind": "lines", "rows": told, "numbered": block.numbered, "more": more}
        case Listing():
            lines = list(printable_lines(block.text))
            more = max(0, len(lines) - MOST_LINES)
            return {"kind": "listing", "lines": lines[:MOST_LINES], "language": block.language, "more": more}
        case Series():
            return {"kind": "series", **series_record(block)}


def words_values(words: Words) -> list[Value]:
    """A string, or a text with its style, a number, a gauge or a break."""
    return [_part(part) for part in parts(words)]


def _part(part: Part) -> Value:
    match part:
        case str():
            return printable(part)
        case Own():
            return {"text": printable(part.text), "style": part.style}
        case Quote():
            text = _lines(part.text) if part.width is None else short(part.text, part.width)
            return {"text": text, "style": part.style, "quote": True}
        case Figure():
            return {"text": printable(part.text), "number": part.value}
        case Look():
            return {"text": part.sign, "style": part.style, "look": part.word}
        case Break():
            return "\n"
        case Gauge():
            return {"gauge": [part.used, part.held, part.cap]}


def _lines(text: str) -> str:
    whole = "\n".join(printable_lines(text))
    return whole if len(whole) <= _QUOTED else whole[: _QUOTED - 1] + "…"
