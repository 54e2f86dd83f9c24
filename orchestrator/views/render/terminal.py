"""Sections as lines for a terminal: pieces of text with a style each, laid out for a width. What others wrote is shown
with escapes for all that acts on a terminal, and so is what is ours. Nothing here loads rich: a screen prints them.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.text import printable, printable_lines, short
from orchestrator.views.render.chart import chart
from orchestrator.views.render.layout import (
    Line,
    Span,
    bar,
    cells,
    cut,
    diff_lines,
    fitting,
    padded,
    plain,
    stripped,
    wrapped,
)
from orchestrator.views.render.model import (
    BREAK,
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

FAINT = "bright_black"
_TITLE = "bold cyan"
_GAP = 2
_INDENT = 2
_BAR = 24
_CHART_WIDTH, _CHART_HEIGHT = 100, 18
_LISTED = 40


@dataclass(frozen=True)
class Terminal:
    """`width` columns; without any, a line is as long as it is, and the terminal folds it."""

    width: int | None = 100
    unicode: bool = True

    def digest(self, sections: Iterable[Section]) -> Iterator[Line]:
        """One screen: a line for each section, then the body of those that are open."""
        shown = list(sections)
        rows = [([(text(it.label), "bold")], self.lines(it.brief)) for it in shown if it.brief]
        yield from self._grid(rows)
        for section in shown:
            if section.open and section.body:
                yield []
                yield from self._body(section.body, "bold")

    def ending(self, sections: Iterable[Section]) -> Iterator[Line]:
        """`name: line`, each with the body of those that are open."""
        for section in sections:
            first, *more = self.lines(section.brief)
            if first:
                yield [(f"{text(section.label)}: ", "bold"), *first]
                yield from more
            if section.open:
                yield from self._body(section.body, "bold")

    def whole(self, sections: Iterable[Section]) -> Iterator[Line]:
        """All of each: the first is the head, and the others stand below their titles."""
        for number, section in enumerate(sections):
            inner = Terminal(self.width and self.width - _INDENT, self.unicode) if number else self
            lines = [line for it in inner.lines(section.line or "") for line in inner._wrapped(it) if it]
            lines += inner._body(section.body, FAINT)
            if number and lines:
                yield []
                yield [(text(section.title or section.label), _TITLE)]
            for line in lines:
                yield [(" " * _INDENT, ""), *line] if number else line

    def lines(self, words: Words) -> list[Line]:
        """At least one; more where there are breaks."""
        found: list[list[Span]] = [[]]
        for part in parts(words):
            for piece in self._pieces(part):
                if isinstance(piece, Break):
                    found.append([])
                elif piece[0]:
                    found[-1].append(piece)
        return list(found)

    def _pieces(self, part: Part) -> Iterable[Span | Break]:
        match part:
            case str():
                return [(printable(part), "")]
            case Own():
                return [(printable(part.text), part.style)]
            case Figure():
                return [(printable(part.text), "")]
            case Quote(width=None):
                rows: list[Span] = [(line, part.style) for line in printable_lines(part.text)]
                return [piece for row in rows for piece in (BREAK, row)][1:]
            case Quote():
                return [(short(part.text, part.width or 0), part.style)]
            case Look():
                return [(part.mark(self.unicode), part.style)]
            case Gauge(cap=None):
                return [(f"{'no cap':<{_BAR}}", "dim")]
            case Gauge():
                return bar(part.used, part.held, part.cap or 0, _BAR, self.unicode)
            case Break():
                return [part]

    def _body(self, body: Iterable[Block], names: str) -> Iterator[Line]:
        for block in body:
            match block:
                case Prose():
                    for line in self.lines(block.words):
                        yield from self._wrapped(line)
                case Facts():
                    yield from self._grid([([(short(name, 500), names)], self.lines(it)) for name, it in block.rows])
                case Table():
                    yield from self._table(block)
                case Lines():
                    for number, row in enumerate(block.rows, 1):
                        for line in self.lines([f"{number}. ", *parts(row)] if block.numbered else row):
                            yield from [cut(line, self.width)] if block.cut and self.width else self._wrapped(line)
                case Listing():
                    yield from self._listing(block)
                case Series():
                    yield from self._chart(block)

    def _wrapped(self, line: Line) -> list[Line]:
        return [line] if self.width is None else wrapped(line, max(20, self.width))

    def _grid(self, rows: Sequence[tuple[Line, list[Line]]]) -> Iterator[Line]:
        widest = max((cells(name) for name, _ in rows), default=0)
        margin = min(widest, self.width // 2 if self.width else widest) + _GAP
        inner = Terminal(self.width and max(20, self.width - margin), self.unicode)
        for name, lines in rows:
            folded = [it for line in lines for it in inner._wrapped(line)]
            for number, line in enumerate(folded):
                yield [*padded([] if number else cut(name, margin - _GAP), margin), *line]

    def _table(self, table: Table) -> Iterator[Line]:
        head: list[list[Line]] = [[[(text(column), FAINT)]] for column in table.columns]
        rows: list[list[list[Line]]] = [head, *([self.lines(cell) for cell in row] for row in table.rows)]
        widest = [max(cells(line) for row in rows for line in row[at]) for at in range(len(head))]
        widths = fitting(widest, self.width - _GAP * (len(widest) - 1)) if self.width else widest
        for row in rows:
            folded = [
                [it for line in cell for it in wrapped(line, room)] for cell, room in zip(row, widths, strict=True)
            ]
            for each in itertools.zip_longest(*folded, fillvalue=[]):
                filled = [padded(cell, room + _GAP) for cell, room in zip(each, widths, strict=True)]
                yield stripped([span for cell in filled for span in cell])

    def _listing(self, listing: Listing) -> Iterator[Line]:
        lines = (
            diff_lines(listing.text)
            if listing.language == "diff"
            else [[(line, "")] for line in printable_lines(listing.text)]
        )
        yield from lines[:_LISTED]
        if len(lines) > _LISTED:
            more = f"; {listing.more} shows all" if listing.more else ""
            yield [(f"… {len(lines) - _LISTED} more lines{more}", "")]

    def _chart(self, series: Series) -> Iterable[Line]:
        return chart(series, width=self.width or _CHART_WIDTH, height=_CHART_HEIGHT, unicode=self.unicode)


def text(words: Words) -> str:
    """In one line and without a style."""
    return " ".join(map(plain, Terminal().lines(words)))
