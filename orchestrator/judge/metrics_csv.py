"""Metrics over iterations as CSV: what a judge may deliver, and what a campaign keeps.

The first column is the iteration, an integer that grows. A column's name may end in "lower is better" or "higher is
better", in brackets or not; higher is the default. In a judge's file an empty cell, nan and inf all mean that there is
no value: a curve that diverged is worth keeping, but it is never a score.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.bounded_json import quoted
from orchestrator.domain.metric import Goal, Metric
from orchestrator.judge.bounds import DEFAULT_CAPS, Caps, ResultFault, ResultRefused
from orchestrator.units import format_size

_GOAL = re.compile(r"[\s(\[,;:-]*\b(higher|lower) is better[\s)\]]*$", re.IGNORECASE)
_INTEGER = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_VALUE = {"", "nan", "inf", "infinity", "none", "null", "na"}


@dataclass(frozen=True)
class Column:
    """`stated` tells whether the file itself said which way is better."""

    name: str
    goal: Goal = Goal.HIGHER
    stated: bool = False


@dataclass(frozen=True)
class Row:
    """One value per column; None where there was none."""

    iteration: int
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Series:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def last(self) -> dict[str, float]:
        """The metrics of the last row; a cell without a value is left out, not looked for further up."""
        if not self.rows:
            return {}
        pairs = zip(self.columns, self.rows[-1].values, strict=True)
        return {column.name: value for column, value in pairs if value is not None}


def parse(data: bytes, caps: Caps = DEFAULT_CAPS) -> Series:
    """A judge's metrics.csv. Raises ResultRefused with BAD_METRICS_CSV and nothing else."""
    lines = _cells(data, caps)
    head = next(lines, None)
    if head is None:
        raise _wrong("no header line")
    columns = _columns(head, caps)
    rows: list[Row] = []
    for number, cells in enumerate(lines, start=2):
        if len(rows) == caps.csv_rows:
            raise _wrong(f"more than {caps.csv_rows} rows")
        row = _row(cells, len(columns), number, caps)
        if rows and row.iteration <= rows[-1].iteration:
            raise _wrong(f"row {number}: iteration {row.iteration} does not come after {rows[-1].iteration}")
        rows.append(row)
    return Series(columns, tuple(rows))


def header(metrics: Iterable[Metric], *, noisy: bool = False) -> list[str]:
    """The cells of the campaign's first line; every metric's column says which way is better.

    Where scores are noisy, a last column has how many repeats the values are medians of, 0 for those of one run.
    """
    named = (f"{metric.name} ({metric.goal} is better)" for metric in metrics)
    return ["iteration", "node", *named, *(["repeats"] if noisy else [])]


def header_line(metrics: Iterable[Metric], *, noisy: bool = False) -> str:
    """The campaign's first line, with its newline."""
    return _joined(header(metrics, noisy=noisy))


def line(iteration: int, node: str, values: Iterable[float | None], repeats: int | None = None) -> str:
    """One line of the campaign's file, with its newline; the values stand in the header's order, None is an empty cell.

    Raises ValueError for a number that is not finite: such a one is never a metric.
    """
    kept = list(values)
    last = [] if repeats is None else [str(repeats)]
    for value in kept:
        if value is not None and not math.isfinite(value):
            raise ValueError(f"{value} at iteration {iteration}: only finite numbers are kept")
    cells = [str(iteration), node, *("" if value is None else repr(float(value)) for value in kept), *last]
    return f"{','.join(cells)}\n"  # digits, dots and signs: nothing of it is ever quoted


def _joined(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _cells(data: bytes, caps: Caps) -> Iterator[list[str]]:
    """Lines that hold anything, cell by cell."""
    if len(data) > caps.csv_bytes:
        raise _wrong(f"{format_size(len(data))}, at most {format_size(caps.csv_bytes)} are read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise _wrong("it holds a NUL")
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), strict=True):
            kept = [cell.strip() for cell in cells]
            if any(kept):
                yield kept
    except csv.Error as error:
        raise _wrong(str(error)) from None


def _columns(head: list[str], caps: Caps) -> tuple[Column, ...]:
    if len(head) - 1 > caps.csv_columns:
        raise _wrong(f"more than {caps.csv_columns} columns")
    if _NUMBER.fullmatch(head[0][: caps.digits]):
        raise _wrong("the first line must name the columns")
    columns = tuple(_column(cell, caps) for cell in head[1:])
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise _wrong(f"column {quoted(name)} occurs twice")
    return columns


def _column(cell: str, caps: Caps) -> Column:
    if len(cell) > caps.name_characters:
        raise _wrong(f"column {quoted(cell)} has a name of more than {caps.name_characters} characters")
    said = _GOAL.search(cell)
    name = cell[: said.start()].strip() if said else cell
    if not name or not name.isprintable():
        raise _wrong(f"column {quoted(cell)} has no plain name")
    return Column(name, Goal(said[1].lower()), stated=True) if said else Column(name)


def _row(cells: list[str], width: int, number: int, caps: Caps) -> Row:
    if len(cells) != width + 1:
        raise _wrong(f"row {number} has {len(cells)} cells, the header {width + 1}")
    if not _INTEGER.fullmatch(cells[0]):
        raise _wrong(f"row {number}: iteration {quoted(cells[0])} is not a whole number")
    return Row(int(cells[0]), tuple(_value(cell, number, caps) for cell in cells[1:]))


def _value(cell: str, number: int, caps: Caps) -> float | None:
    if cell.lstrip("+-").lower() in _NO_VALUE:
        return None
    if len(cell) > caps.digits or not _NUMBER.fullmatch(cell):
        raise _wrong(f"row {number}: {quoted(cell)} is not a number")
    value = float(cell)
    return value if math.isfinite(value) else None


def _wrong(detail: str) -> ResultRefused:
    return ResultRefused(ResultFault.BAD_METRICS_CSV, detail)
