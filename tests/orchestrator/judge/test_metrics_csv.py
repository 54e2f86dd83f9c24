"""Metrics as CSV: a judge's curves are read strictly, a campaign's lines are written so that anyone can read them."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.metric import Goal, Metric
from orchestrator.judge.bounds import Caps, ResultFault, ResultRefused
from orchestrator.judge.metrics_csv import Column, header, header_line, line, parse


@pytest.mark.parametrize(
    ("cell", "column"),
    [
        ("loss (lower is better)", Column("loss", Goal.LOWER, stated=True)),
        ("loss, lower is better", Column("loss", Goal.LOWER, stated=True)),
        ("loss [Lower Is Better]", Column("loss", Goal.LOWER, stated=True)),
        ("loss lower is better", Column("loss", Goal.LOWER, stated=True)),
        ("acc - higher is better", Column("acc", Goal.HIGHER, stated=True)),
        ("acc", Column("acc")),
        ("follower is better", Column("follower is better")),
        ("lower is better than", Column("lower is better than")),
    ],
)
def test_goals(cell: str, column: Column) -> None:
    """A column's name may say which way is better; higher is the default."""
    text = io.StringIO()
    csv.writer(text).writerows([["step", cell], [0, 1]])
    assert parse(text.getvalue().encode()).columns == (column,)


def test_rows() -> None:
    """Whole numbers that grow, then numbers; no value is no value, and only the last row counts as the result."""
    series = parse(b"\xef\xbb\xbfstep,a,b\r\n0,1,\r\n\r\n5,nan,2.5e-1\r\n7,1e999,-3\r\n")
    assert [(row.iteration, row.values) for row in series.rows] == [(0, (1, None)), (5, (None, 0.25)), (7, (None, -3))]
    assert series.last() == {"b": -3.0}


HOSTILE = {
    "no header": b"1,2\n3,4\n",
    "blank": b"\n\n",
    "no name": b"step,\n1,2\n",
    "only a goal": b"step,(lower is better)\n1,2\n",
    "a name twice": b"step,a,a (lower is better)\n1,2,3\n",
    "a control character": b"step,a\x1b[2J\n1,2\n",
    "a long name": b"step," + b"a" * 201 + b"\n",
    "a cell too few": b"step,a\n1\n",
    "a cell too many": b"step,a\n1,2,3\n",
    "not growing": b"step,a\n1,2\n1,3\n",
    "shrinking": b"step,a\n2,2\n1,3\n",
    "a fraction as the iteration": b"step,a\n1.5,2\n",
    "a negative iteration": b"step,a\n-1,2\n",
    "an endless iteration": b"step,a\n" + b"1" * 100_000 + b",2\n",
    "other digits": "step,a\n\u0661,2\n".encode(),
    "words": b"step,a\n1,much\n",
    "hexadecimal": b"step,a\n1,0x10\n",
    "underscores": b"step,a\n1,1_000\n",
    "an endless number": b"step,a\n1," + b"9" * 100_000 + b"\n",
    "an open quote": b'step,a\n1,"2\n',
    "a quote in the middle": b'step,a\n1,"2"3\n',
    "NUL": b"step,a\n1,\0\n",
    "bad utf-8": b"step,a\n1,\xff\n",
    "too many columns": b"step" + b",a" * 65 + b"\n",
    "a field past every limit": b'step,a\n1,"' + b"x" * 200_000 + b'"\n',
    "too large": b"step,a\n" + b" " * (4 << 20),
    "commas": b"," * (1 << 20),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_t54_refused(name: str) -> None:
    """A malformed table is refused with its one code, and the detail can be shown."""
    with pytest.raises(ResultRefused) as refused:
        parse(HOSTILE[name])
    assert refused.value.code is ResultFault.BAD_METRICS_CSV
    assert refused.value.detail.isprintable()


def test_rows_are_capped() -> None:
    """One row more than allowed is refused; a file without rows supplies nothing."""
    assert parse(b"step,a\n").last() == {}
    assert len(parse(b"s,a\n1,1\n2,2\n", Caps(csv_rows=2)).rows) == 2
    with pytest.raises(ResultRefused):
        parse(b"s,a\n1,1\n2,2\n3,3\n", Caps(csv_rows=2))


METRICS = (Metric("score"), Metric("loss, mean", Goal.LOWER))


def test_the_campaigns_lines() -> None:
    """The first column is the iteration, the columns say which way is better, numbers come back exactly."""
    assert header(METRICS) == ["iteration", "node", "score (higher is better)", "loss, mean (lower is better)"]
    text = header_line(METRICS) + line(0, "1", [0.1, None]) + line(1, "1.10", [1 / 3, 1e-300])
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == header(METRICS)
    assert rows[1] == ["0", "1", "0.1", ""]
    assert [float(cell) for cell in rows[2][2:]] == [1 / 3, 1e-300]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_metric_is_not_finite(value: float) -> None:
    """Such a number never gets into the campaign's file."""
    with pytest.raises(ValueError, match="finite"):
        line(1, "1", [value])


@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=2, max_size=2))
)
def test_what_is_written_is_read(rows: list[list[float | None]]) -> None:
    """Our own lines, without the node, are a judge's table."""
    text = header_line(METRICS) + "".join(line(at, "", values) for at, values in enumerate(rows))
    cells = [[row[0], *row[2:]] for row in csv.reader(io.StringIO(text))]
    again = io.StringIO()
    csv.writer(again).writerows(cells)
    series = parse(again.getvalue().encode())
    assert [list(row.values) for row in series.rows] == rows
    assert [(column.name, column.goal) for column in series.columns] == [(it.name, it.goal) for it in METRICS]
