"""Sections as one HTML file: it opens from disk, loads nothing, runs nothing, and prints.

Everything that is not a tag of ours goes through `tags.content`, words of others and our own alike. The policy in its
head forbids scripts, frames, images and addresses, and allows the one style sheet by its digest: what a mistake of ours
let through would still do nothing.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from orchestrator.text import printable_lines, short
from orchestrator.views.campaign.looks import counted
from orchestrator.views.render.layout import diff_lines
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
    raw,
)
from orchestrator.views.render.svg import svg
from orchestrator.views.render.tags import class_of, content, element

STYLES = Path(__file__).with_name("report.css")
# Lines of a listing; what is longer is in the campaign.
_LISTED = 2000
_QUOTED = 2000
# From so many rows on, a table is folded until it is asked for; printed, all of it is there.
_FOLDED = 40


def document(sections: Sequence[Section]) -> str:
    """The first section is the head; those without a title are facts below it."""
    head, *rest = sections
    listed = [(section.label, section.brief) for section in rest if not section.title and section.brief]
    main = [element("header", element("h1", text(head.title)) + _within(head))]
    main += [_facts(listed)] if listed else []
    for number, section in enumerate(rest):
        if section.title and (within := _within(section)):
            title = element("h2", text(section.title), id=f"s{number}")
            main.append(element("section", title + within, **{"aria-labelledby": f"s{number}"}))
    return _page(raw(head.title), "\n".join(main))


@cache
def styles() -> str:
    return STYLES.read_text(encoding="utf-8")


def _page(title: str, main: str) -> str:
    digest = base64.b64encode(hashlib.sha256(styles().encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"{element('title', content(title))}\n<style>{styles()}</style>\n</head>\n<body>\n<main>\n{main}\n</main>\n"
        "</body>\n</html>\n"
    )


def _within(section: Section) -> str:
    said = section.line if section.line and not (section.body_says_all and section.body) else ""
    return (element("p", text(said), **{"class": "lead"}) if said else "") + "".join(map(_block, section.body))


def _block(block: Block) -> str:
    match block:
        case Prose():
            return element("p", text(block.words))
        case Facts():
            return _facts(block.rows)
        case Table():
            return _table(block)
        case Lines():
            rows = "".join(element("li", text(row)) for row in block.rows)
            return element("ol" if block.numbered else "ul", rows)
        case Listing():
            return _listing(block)
        case Series():
            return _chart(block)


def _facts(rows: Iterable[tuple[str, Words]]) -> str:
    return element("dl", "".join(element("dt", content(name)) + element("dd", text(words)) for name, words in rows))


def _table(block: Table) -> str:
    head = element("tr", "".join(element("th", text(column), scope="col") for column in block.columns))
    rows = "".join(element("tr", "".join(map(_cell, row))) for row in block.rows)
    made = element("div", element("table", element("thead", head) + element("tbody", rows)), **{"class": "wide"})
    if len(block.rows) < _FOLDED:
        return made
    return element("details", element("summary", f"{len(block.rows):,} rows") + made)


def _cell(words: Words) -> str:
    found = parts(words)
    is_number = len(found) == 1 and isinstance(found[0], Figure)
    return element("td", text(words), **({"class": "number"} if is_number else {}))


def _listing(block: Listing) -> str:
    lines = diff_lines(block.text) if block.language == "diff" else [[(it, "")] for it in printable_lines(block.text)]
    shown = "\n".join("".join(_span(span, style, "\t") for span, style in line) for line in lines[:_LISTED])
    more = element("p", f"{len(lines) - _LISTED:,} lines more.") if len(lines) > _LISTED else ""
    return element("pre", element("code", shown), tabindex=0) + more


def _chart(block: Series) -> str:
    drawn = svg(block)
    if not drawn:
        return element("p", "nothing is scored yet")
    entries = [
        _entry(look.sign, look.style, f"{look.word} {count:,}")
        for look, count in counted(it.look for it in block.points)
    ]
    legend = element("ul", "".join([*entries, _entry("━", "green", "best kept")]))
    return element("figure", drawn + element("figcaption", legend))


def _entry(sign: str, style: str, words: str) -> str:
    return element(
        "li", element("span", sign, **{"class": class_of(style), "aria-hidden": "true"}) + content(f" {words}")
    )


def text(words: Words) -> str:
    return "".join(map(_part, parts(words)))


def _part(part: Part) -> str:
    match part:
        case str():
            return content(part)
        case Figure():
            return content(part.text)
        case Own():
            return _span(part.text, part.style)
        case Quote():
            return _quote(part)
        case Look():
            return _span(part.sign, part.style)
        case Break():
            return "<br>"
        case Gauge():
            return _gauge(part)


def _quote(part: Quote) -> str:
    found = short(part.text, part.width or _QUOTED) if part.text else ""
    return element("q", content(found), **{"class": class_of(part.style)}) if found else ""


def _gauge(part: Gauge) -> str:
    if not part.cap:
        return ""
    said = f"{part.used / part.cap:.0%} of the cap"
    return element("meter", said, min=0, max=part.cap, value=min(part.used, part.cap), title=said)


def _span(words: str, style: str, keep: str = "") -> str:
    found = class_of(style)
    return element("span", content(words, keep), **{"class": found}) if found else content(words, keep)
