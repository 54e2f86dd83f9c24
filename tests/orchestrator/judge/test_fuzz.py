"""Any bytes at all from a judge's chamber: a result of plain, finite numbers or a typed refusal, and soon."""

import json
import math
import re

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.judge.contract import Result, ResultRefused, parse_result
from orchestrator.judge.unsafe import unsafe_loaders

NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-(10**420), 10**420))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(st.characters(exclude_categories=()), max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(st.characters(exclude_categories=()), max_size=6), inner)
    ),
    max_leaves=12,
)
KEYS = ["score", "valid", "metrics", "tasks", "tasks_meta", "notes", "more"]
RESULTS = st.dictionaries(st.sampled_from(KEYS), VALUES)
PIECES = st.sampled_from(
    ['{"score": ', "1", "-", "1e999", "NaN", ', "metrics": {', '"a": ', *'}{[]",', "\\u", "d800", "9" * 500]
)
TABLES = st.lists(st.sampled_from(["step", ",", "\n", "1", "2", "nan", '"', "a (lower is better)", "\0", "\x1b"]))


def read(outputs: dict[str, bytes]) -> Result | str:
    try:
        return parse_result(outputs)
    except ResultRefused as refused:
        return str(refused)


def check(outputs: dict[str, bytes]) -> None:
    """What must be true of any outputs."""
    result = read(outputs)
    if isinstance(result, str):
        assert result.isprintable()
        return
    assert result.score is not None or not result.valid
    numbers = [*result.values.values(), *result.tasks.values(), *(trace.score for trace in result.traces)]
    assert all(type(number) is float and math.isfinite(number) for number in numbers)
    names = [*result.metrics, *result.tasks, *result.directions]
    assert all(name.isprintable() and name for name in names)
    assert "\0" not in result.notes
    json.dumps([result.values, result.tasks, result.notes], ensure_ascii=False, allow_nan=False).encode()


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_arbitrary_bytes(result: bytes, table: bytes, trace: bytes) -> None:
    """Bytes that mean nothing."""
    check({"result.json": result, "metrics.csv": table, "traces/a.json": trace})
    check({"result.json": b'{"score": 1}', "metrics.csv": table, "traces/a.json": trace})


@given(RESULTS, VALUES)
def test_arbitrary_values(result: dict[str, object], trace: object) -> None:
    """JSON of the right shape with anything in it."""
    check({"result.json": json.dumps(result).encode(), "traces/a.json": json.dumps(trace).encode()})


@given(st.lists(PIECES, max_size=20).map("".join))
def test_pieces(text: str) -> None:
    """Pieces of results in any order."""
    check({"result.json": text.encode()})


@given(TABLES.map("".join))
def test_tables(text: str) -> None:
    """Pieces of tables in any order."""
    check({"result.json": b'{"score": 1}', "metrics.csv": text.encode()})


@given(RESULTS)
def test_the_standard_parser_agrees(result: dict[str, object]) -> None:
    """What is taken means what any JSON parser says that it means."""
    data = json.dumps(result).encode()
    try:
        score = parse_result({"result.json": data}).score
    except ResultRefused:
        return
    assert score == json.loads(data).get("score")


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_judge_can_be_looked_through(data: bytes) -> None:
    """Judges that are no Python at all are no error."""
    for finding in unsafe_loaders({"judge.py": data}):
        assert re.fullmatch(r"judge\.py", finding.path)
