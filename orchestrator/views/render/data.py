"""Sections for programs: the keys that each promises, else what people see of it, as plain JSON values."""

from collections.abc import Iterable
from typing import Any

from orchestrator.views.render.model import (
    Block,
    Facts,
    Figure,
    Lines,
    Listing,
    Prose,
    Section,
    Series,
    Table,
    Words,
    parts,
    raw,
)


def record(sections: Iterable[Section]) -> dict[str, Any]:
    """Text of others is as they wrote it: the printer of JSON escapes it."""
    found: dict[str, Any] = {}
    for section in sections:
        found |= section.data if section.data is not None else {section.key: _seen(section)}
    return found


def series_record(series: Series) -> dict[str, Any]:
    points = [
        {"order": it.order, "node": it.node, "status": it.look.word, "score": it.score, "cohort": it.cohort}
        | ({"screened": True} if it.screened else {})
        for it in series.points
    ]
    best = [{"order": it.order, "node": it.node, "score": it.score} for it in series.steps]
    return {"metric": series.name, "goal": series.goal, "points": points, "best": best}


def _seen(section: Section) -> dict[str, Any] | None:
    """None where there is nothing to say."""
    found: dict[str, Any] = {"line": raw(section.line)} if section.line else {}
    for block in section.body:
        name, value = _block(block)
        if name == "facts":
            found[name] = {**found.get(name, {}), **value}
        elif name == "series":
            found |= value
        else:
            found[name] = [*found.get(name, []), *value]
    return found or None


def _block(block: Block) -> tuple[str, Any]:
    match block:
        case Prose():
            return "text", [raw(block.words)]
        case Lines():
            return "text", [raw(row) for row in block.rows]
        case Listing():
            return "text", [block.text]
        case Facts():
            return "facts", {name: _value(words) for name, words in block.rows}
        case Table():
            names = [raw(column) for column in block.columns]
            return "table", [dict(zip(names, map(_value, row), strict=True)) for row in block.rows]
        case Series():
            return "series", series_record(block)


def _value(words: Words) -> float | str | None:
    found = parts(words)
    return found[0].value if len(found) == 1 and isinstance(found[0], Figure) else raw(words)
