"""Every node of a run as a dot: score over order, with the stair of the best. What has no score stands on a line of its
own below the axis, because a missing score is not a zero.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from orchestrator.domain.headline import LEGEND, MARK
from orchestrator.domain.metric import Goal, Metric
from orchestrator.domain.records import Run
from orchestrator.domain.state import State
from orchestrator.text import printable
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.axis import Axis, axis_of
from orchestrator.views.campaign.looks import legend
from orchestrator.views.campaign.points import Point, Step, points_of, stair_of

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

    def line(self, row: int) -> Text:
        cells = [self.cells.get((row, column), (0, " ", ""))[1:] for column in range(self.columns)]
        text = Text()
        for style, run in itertools.groupby(cells, key=lambda cell: cell[1]):
            text.append("".join(sign for sign, _ in run), style)
        text.rstrip()
        return text


def chart(
    state: State, metric: Metric, *, width: int, height: int, unicode: bool = True, run: Run | None = None
) -> Text:
    """As many lines as fit into `height`, none longer than `width`; both have a least size."""
    run = run or state.run
    points = points_of(state, metric, run)
    steps = stair_of(state, points, metric)
    width = max(MIN_WIDTH, width)
    head = _head(points, steps, metric, run, width)
    lines = _UNICODE if unicode else _ASCII
    stair = Text.assemble((lines.flat * 2, _STAIR), " best kept")
    screened = [Text(LEGEND)] if any(point.screened for point in points) else []
    edges = _edges(points, steps, lines)
    below = legend([point.look for point in points], unicode, width, [stair, *edges, *screened])
    if not any(point.score is not None for point in points):
        return Text("\n").join([head, Text("nothing is scored yet", _FAINT), *below])
    body = plot(points, steps, width=width, height=height - 1 - len(below), unicode=unicode)
    return Text("\n").join([head, *body, *below])


def plot(
    points: Sequence[Point], steps: Sequence[Step], *, width: int, height: int, unicode: bool = True
) -> Iterator[Text]:
    """The dots alone: no head and no legend. There must be a score among them."""
    # Below the rows: the axis, the line without a score, the numbers.
    rows = max(MIN_ROWS, height - 3)
    return _body(points, steps, _axis(points, steps, rows), width, _UNICODE if unicode else _ASCII, unicode)


def _axis(points: Sequence[Point], steps: Sequence[Step], rows: int) -> Axis:
    scores = [point.score for point in points if point.score is not None]
    return axis_of(scores, [step.score for step in steps], rows)


def _edges(points: Sequence[Point], steps: Sequence[Step], lines: Lines) -> list[Text]:
    """What is drawn at the edge because it lies beyond it, how many and how far."""
    axis = _axis(points, steps, MIN_ROWS)
    told = []
    for side, furthest in ((1, max), (-1, min)):
        beyond = [point.score for point in points if point.score is not None and axis.beyond(point.score) == side]
        if beyond:
            far = figures.score(furthest(beyond))
            told.append(
                Text(f"{lines.edge(side)} beyond the axis {len(beyond):,} ({'up' if side > 0 else 'down'} to {far})")
            )
    return told


def _body(
    points: Sequence[Point], steps: Sequence[Step], axis: Axis, width: int, lines: Lines, unicode: bool
) -> Iterator[Text]:
    labels = axis.labels()
    margin = max(len("no score"), *map(len, labels.values()))
    place = _Placing(len(points), width - margin - 2 - len("  order"))
    canvas = _Canvas(place(len(points)) + 1, axis.rows + 1)
    _draw_borders(canvas, points, place, lines)
    _draw_stair(canvas, steps, axis, place, lines)
    for point in points:
        row = axis.rows if point.score is None else axis.row(point.score)
        sign = MARK if point.screened else point.look.mark(unicode)
        if point.score is not None and (beyond := axis.beyond(point.score)):
            sign = lines.edge(beyond)
        canvas.put(row, place(point.order), sign, point.look.style, 10 + point.look.rank)
    for row in range(axis.rows):
        tick = lines.tick if row in labels else lines.axis
        yield Text.assemble((f"{labels.get(row, ''):>{margin}} {tick}", _FAINT), canvas.line(row))
    yield Text(" " * (margin + 1) + lines.corner + lines.flat * canvas.columns, _FAINT)
    yield Text.assemble((f"{'no score':>{margin}}  ", _FAINT), canvas.line(axis.rows))
    last = f"{len(points)}"
    gap = max(1, canvas.columns - 1 - len(last))
    yield Text(" " * (margin + 2) + "1" + " " * gap + (last if len(points) > 1 else "") + "  order", _FAINT)


@dataclass(frozen=True)
class _Placing:
    """From an order to a column: some apart while there is room, several in one when there is not."""

    count: int
    columns: int

    def __call__(self, order: int) -> int:
        return (order - 1) * min(self.columns, _WIDEST_STEP * self.count) // self.count


def _draw_borders(canvas: _Canvas, points: Sequence[Point], place: _Placing, lines: Lines) -> None:
    """Where a cohort begins that is not the first: scores left and right of it are not comparable."""
    seen: set[str] = set()
    for point in points:
        if point.cohort is None or point.cohort in seen:
            continue
        seen.add(point.cohort)
        if len(seen) > 1:
            for row in range(canvas.rows):
                canvas.put(row, place(point.order) - 1, lines.border, _FAINT, 1)


def _draw_stair(canvas: _Canvas, steps: Sequence[Step], axis: Axis, place: _Placing, lines: Lines) -> None:
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


def _head(points: Sequence[Point], steps: Sequence[Step], metric: Metric, run: Run, width: int) -> Text:
    better = "higher" if metric.goal is Goal.HIGHER else "lower"
    text = f"{printable(metric.name)} ({better} is better)"
    cohorts = {point.cohort for point in points if point.cohort}
    parts = [f"run {run.number}", figures.plural(len(points), "node")]
    if steps:
        parts.append(f"best {figures.score(steps[-1].score)} at {steps[-1].node}")
    if len(cohorts) > 1:
        parts.append(f"{len(cohorts)} cohorts, not comparable across the dotted line")
    whole = Text.assemble((text, "bold"), "  " + ", ".join(parts))
    whole.truncate(width, overflow="ellipsis")
    return whole
