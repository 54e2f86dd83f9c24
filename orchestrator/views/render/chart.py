"""Every node of a run as a dot: score over order, with the stair of the best. What has no score stands on a line of its
own below the axis, because a missing score is not a zero.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from orchestrator.domain import figures
from orchestrator.domain.headline import LEGEND, MARK
from orchestrator.text import printable
from orchestrator.views.campaign.looks import counted
from orchestrator.views.render.axis import Axis, axis_of
from orchestrator.views.render.layout import Line, cells, cut, stripped
from orchestrator.views.render.model import Look, Point, Series, Step

MIN_WIDTH = 40
MIN_ROWS = 4
_WIDEST_STEP = 4
_STAIR = "green"
_FAINT = "bright_black"


@dataclass(frozen=True)
class Lines:
    """What lines are drawn with. `rise` and `fall` are the corners of a step, lower one first."""

    flat: str
    upright: str
    rise: tuple[str, str]
    fall: tuple[str, str]
    axis: str
    tick: str
    corner: str
    border: str
    above: str
    below: str

    def edge(self, beyond: int) -> str:
        return self.above if beyond > 0 else self.below


_UNICODE = Lines("─", "│", ("┘", "┌"), ("└", "┐"), "│", "┤", "└", "┊", "▲", "▼")
_ASCII = Lines("-", "|", ("+", "+"), ("+", "+"), "|", "+", "+", ":", "^", "_")


@dataclass
class _Canvas:
    """Cells by row and column; a cell keeps what has the highest rank."""

    columns: int
    rows: int
    cells: dict[tuple[int, int], tuple[int, str, str]] = field(default_factory=dict)

    def put(self, row: int, column: int, sign: str, style: str, rank: int) -> None:
        if 0 <= column < self.columns and rank >= self.cells.get((row, column), (-1, "", ""))[0]:
            self.cells[row, column] = (rank, sign, style)

    def line(self, row: int) -> Line:
        cells = [self.cells.get((row, column), (0, " ", ""))[1:] for column in range(self.columns)]
        runs = itertools.groupby(cells, key=lambda cell: cell[1])
        return stripped([("".join(sign for sign, _ in run), style) for style, run in runs])


def chart(series: Series, *, width: int, height: int, unicode: bool = True) -> list[Line]:
    """As many lines as fit into `height`, none longer than `width`; both have a least size."""
    points, steps = series.points, series.steps
    width = max(MIN_WIDTH, width)
    head = _head(series, width)
    lines = _UNICODE if unicode else _ASCII
    stair: Line = [(lines.flat * 2, _STAIR), (" best kept", "")]
    screened: list[Line] = [[(LEGEND, "")]] if any(point.screened for point in points) else []
    axis = _axis(points, steps)
    edges = _edges(points, axis, lines)
    below = legend([point.look for point in points], unicode, width, [stair, *edges, *screened])
    if not any(point.score is not None for point in points):
        return [head, [("nothing is scored yet", _FAINT)], *below]
    body = _body(points, steps, _as_high(axis, height - 1 - len(below)), width, lines, unicode)
    return [head, *body, *below]


def legend(looks: Iterable[Look], unicode: bool, width: int, more: Sequence[Line] = ()) -> list[Line]:
    """Every look that occurs, with its count; as many lines as it takes, none cut inside an entry."""
    entries: list[Line] = [
        [(look.mark(unicode), look.style), (f" {look.word} {count:,}", "")] for look, count in counted(looks)
    ]
    rows: list[Line] = [[]]
    for entry in (*entries, *more):
        if rows[-1] and cells(rows[-1]) + 3 + cells(entry) > width:
            rows.append([])
        rows[-1] = [*rows[-1], ("   " if rows[-1] else "", ""), *entry]
    return rows


def plot(
    points: Sequence[Point], steps: Sequence[Step], *, width: int, height: int, unicode: bool = True
) -> Iterator[Line]:
    """The dots alone: no head and no legend. There must be a score among them."""
    lines = _UNICODE if unicode else _ASCII
    return _body(points, steps, _as_high(_axis(points, steps), height), width, lines, unicode)


def _axis(points: Sequence[Point], steps: Sequence[Step]) -> Axis:
    scores = [point.score for point in points if point.score is not None]
    return axis_of(scores, [step.score for step in steps], MIN_ROWS)


def _as_high(axis: Axis, height: int) -> Axis:
    """Below the rows: the axis, the line without a score, the numbers."""
    return replace(axis, rows=max(MIN_ROWS, height - 3))


def _edges(points: Sequence[Point], axis: Axis, lines: Lines) -> list[Line]:
    """What is drawn at the edge because it lies beyond it, how many and how far."""
    low, high = axis.low, axis.high
    outside = [point.score for point in points if point.score is not None and not low <= point.score <= high]
    told: list[Line] = []
    for side, furthest in ((1, max), (-1, min)):
        beyond = [score for score in outside if axis.beyond(score) == side]
        if beyond:
            far = figures.score(furthest(beyond))
            way = "up" if side > 0 else "down"
            told.append([(f"{lines.edge(side)} beyond the axis {len(beyond):,} ({way} to {far})", "")])
    return told


def _body(
    points: Sequence[Point], steps: Sequence[Step], axis: Axis, width: int, lines: Lines, unicode: bool
) -> Iterator[Line]:
    labels = axis.labels()
    margin = max(len("no score"), *map(len, labels.values()))
    place = Placing(len(points), width - margin - 2 - len("  order"))
    canvas = _Canvas(place(len(points)) + 1, axis.rows + 1)
    _draw_borders(canvas, points, place, lines)
    _draw_stair(canvas, steps, axis, place, lines)
    for point in visible(points, axis, place):
        row = axis.rows if point.score is None else axis.row(point.score)
        sign = MARK if point.screened else point.look.mark(unicode)
        if point.score is not None and (beyond := axis.beyond(point.score)):
            sign = lines.edge(beyond)
        canvas.put(row, place(point.order), sign, point.look.style, 10 + point.look.rank)
    for row in range(axis.rows):
        tick = lines.tick if row in labels else lines.axis
        yield [(f"{labels.get(row, ''):>{margin}} {tick}", _FAINT), *canvas.line(row)]
    yield [(" " * (margin + 1) + lines.corner + lines.flat * canvas.columns, _FAINT)]
    yield [(f"{'no score':>{margin}}  ", _FAINT), *canvas.line(axis.rows)]
    last = f"{len(points)}"
    gap = max(1, canvas.columns - 1 - len(last))
    yield [(" " * (margin + 2) + "1" + " " * gap + (last if len(points) > 1 else "") + "  order", _FAINT)]


def visible(points: Sequence[Point], axis: Axis, place: "Placing") -> list[Point]:
    """Those that no later one hides, which looks alike and stands at the same place. Points may be many, and places are
    few, so this goes through them at once: a call for each would take as long as all that is read for the chart.
    """
    low, high, span, last = axis.low, axis.high, axis.high - axis.low, axis.rows - 1
    wide, count = place.wide, place.count
    found: dict[tuple[int, int | None, str, bool], Point] = {}
    for point in points:
        _, order, look, score, _, screened = point
        row: int | None = None
        if score is not None:
            inside = low <= score <= high
            row = round((1.0 - (score - low) / span) * last) if inside else -1 if score > high else axis.rows
        found[(order - 1) * wide // count, row, look.word, screened] = point
    return sorted(found.values(), key=attrgetter("order"))


@dataclass(frozen=True)
class Placing:
    """From an order to a column: some apart while there is room, several in one when there is not."""

    count: int
    columns: int

    @property
    def wide(self) -> int:
        return min(self.columns, _WIDEST_STEP * self.count)

    def __call__(self, order: int) -> int:
        return (order - 1) * self.wide // self.count


def _draw_borders(canvas: _Canvas, points: Sequence[Point], place: Placing, lines: Lines) -> None:
    """Where a cohort begins that is not the first: scores left and right of it are not comparable."""
    seen: set[str] = set()
    for point in points:
        if point.cohort is None or point.cohort in seen:
            continue
        seen.add(point.cohort)
        if len(seen) > 1:
            for row in range(canvas.rows):
                canvas.put(row, place(point.order) - 1, lines.border, _FAINT, 1)


def _draw_stair(canvas: _Canvas, steps: Sequence[Step], axis: Axis, place: Placing, lines: Lines) -> None:
    for at, step in enumerate(steps):
        column, row = place(step.order), axis.row(step.score)
        end = place(steps[at + 1].order) if at + 1 < len(steps) else canvas.columns
        stops = at + 1 < len(steps) and steps[at + 1].fresh
        for flat in range(column, end - 1 if stops else end):
            canvas.put(row, flat, lines.flat, _STAIR, 2)
        if step.fresh:
            continue
        before = axis.row(steps[at - 1].score)
        for between in range(min(row, before) + 1, max(row, before)):
            canvas.put(between, column, lines.upright, _STAIR, 2)
        if row != before:
            old, new = lines.rise if row < before else (lines.fall[1], lines.fall[0])
            canvas.put(before, column, old, _STAIR, 3)
            canvas.put(row, column, new, _STAIR, 3)


def _head(series: Series, width: int) -> Line:
    text = f"{printable(series.name)} ({series.goal} is better)"
    cohorts = {point.cohort for point in series.points if point.cohort}
    parts = [f"run {series.run}", figures.plural(len(series.points), "node")]
    if series.steps:
        parts.append(f"best {figures.score(series.steps[-1].score)} at {series.steps[-1].node}")
    if len(cohorts) > 1:
        parts.append(f"{len(cohorts)} cohorts, not comparable across the dotted line")
    return cut([(text, "bold"), ("  " + ", ".join(parts), "")], width)
