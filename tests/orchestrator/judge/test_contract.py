"""A judge's result: what is taken, and the one code for each way in which it can be wrong."""

import json

import pytest

from orchestrator.domain.metric import Goal
from orchestrator.judge.contract import Caps, Result, ResultFault, ResultRefused, parse_result
from tests.lag import least_time

GOOD = b'{"score": 1.5}'
SECRET = "the-answer-is-42"


def fault(outputs: dict[str, bytes], caps: Caps | None = None) -> ResultFault:
    with pytest.raises(ResultRefused) as refused:
        parse_result(outputs, caps=caps or Caps())
    assert refused.value.detail.isprintable()
    return refused.value.code


def result(document: object, **others: bytes) -> Result:
    return parse_result({"result.json": json.dumps(document).encode(), **others})


HOSTILE = {
    "nothing": (None, ResultFault.MISSING),
    "claimed": (b"", ResultFault.EMPTY),
    "too large": (b" " * (1 << 20) + GOOD, ResultFault.TOO_LARGE),
    "bad utf-8": (b'{"score": 1, "notes": "\xff"}', ResultFault.NOT_UTF8),
    "utf-16": ('{"score": 1}'.encode("utf-16"), ResultFault.NOT_UTF8),
    "half a character": (b'{"score": 1, "notes": "\\ud800"}', ResultFault.NOT_UTF8),
    "half a character as a key": (b'{"score": 1, "\\udc00": 1}', ResultFault.NOT_UTF8),
    "white space": (b" \n", ResultFault.NOT_JSON),
    "cut": (b'{"score": 1', ResultFault.NOT_JSON),
    "more after it": (b'{"score": 1} {"score": 2}', ResultFault.NOT_JSON),
    "byte order mark": (b'\xef\xbb\xbf{"score": 1}', ResultFault.NOT_JSON),
    "single quotes": (b"{'score': 1}", ResultFault.NOT_JSON),
    "a pickle": (b"cos\nsystem\n(S'true'\ntR.", ResultFault.NOT_JSON),
    "deep lists": (b'{"score": 1, "x": ' + b"[" * 32 + b"]" * 32 + b"}", ResultFault.TOO_DEEP),
    "more lists than are read": (b'{"score": 1, "x": [' + b"[]," * 50_000 + b"1]}", ResultFault.TOO_LARGE),
    "a hundred thousand deep": (b"[" * 100_000, ResultFault.TOO_DEEP),
    "deep objects": (b'{"a":' * 50_000, ResultFault.TOO_DEEP),
    "deep after an escaped quote": (b'["\\"",' + b"[" * 40, ResultFault.TOO_DEEP),
    "key twice": (b'{"score": 1, "score": 2}', ResultFault.DUPLICATE_KEY),
    "key twice by escape": (b'{"score": 1, "\\u0073core": 2}', ResultFault.DUPLICATE_KEY),
    "key twice further in": (b'{"score": 1, "tasks": {"a": 1, "a": 2}}', ResultFault.DUPLICATE_KEY),
    "endless integer": (b'{"score": ' + b"9" * 1_000_000 + b"}", ResultFault.NUMBER_TOO_LONG),
    "endless fraction": (b'{"score": 0.' + b"9" * 1_000_000 + b"}", ResultFault.NUMBER_TOO_LONG),
    "NaN in a metric": (b'{"score": 1, "metrics": {"a": NaN}}', ResultFault.NOT_FINITE),
    "infinity in a task": (b'{"score": 1, "tasks": {"a": -Infinity}}', ResultFault.NOT_FINITE),
    "NaN under an unknown key": (b'{"score": 1, "more": [NaN]}', ResultFault.NOT_FINITE),
    "a list": (b"[1]", ResultFault.NOT_OBJECT),
    "a number": (b"1", ResultFault.NOT_OBJECT),
    "null": (b"null", ResultFault.NOT_OBJECT),
    "no score": (b'{"valid": true}', ResultFault.NO_SCORE),
    "another case": (b'{"Score": 1}', ResultFault.NO_SCORE),
    "a score in words": (b'{"score": "1"}', ResultFault.SCORE_NOT_NUMBER),
    "a boolean score": (b'{"score": true}', ResultFault.SCORE_NOT_NUMBER),
    "null for a score": (b'{"score": null}', ResultFault.SCORE_NOT_NUMBER),
    "a list for a score": (b'{"score": [1]}', ResultFault.SCORE_NOT_NUMBER),
    "a boolean score of no solution": (b'{"score": false, "valid": false}', ResultFault.SCORE_NOT_NUMBER),
    "NaN": (b'{"score": NaN}', ResultFault.SCORE_NOT_FINITE),
    "infinity": (b'{"score": Infinity}', ResultFault.SCORE_NOT_FINITE),
    "1e999": (b'{"score": 1e999}', ResultFault.SCORE_NOT_FINITE),
    "an integer past every float": (b'{"score": ' + b"9" * 400 + b"}", ResultFault.SCORE_NOT_FINITE),
    "the first integer past every float": (b'{"score": %d}' % 2**1024, ResultFault.SCORE_NOT_FINITE),
    "an integer that rounds past every float": (b'{"score": %d}' % (2**1024 - 1), ResultFault.SCORE_NOT_FINITE),
    "valid in words": (b'{"score": 1, "valid": "true"}', ResultFault.BAD_FIELD),
    "valid as a number": (b'{"score": 1, "valid": 1}', ResultFault.BAD_FIELD),
    "metrics as a list": (b'{"score": 1, "metrics": [1]}', ResultFault.BAD_FIELD),
    "a metric in words": (b'{"score": 1, "metrics": {"a": "1"}}', ResultFault.BAD_FIELD),
    "a boolean metric": (b'{"score": 1, "metrics": {"a": true}}', ResultFault.BAD_FIELD),
    "a metric without a name": (b'{"score": 1, "metrics": {"": 1}}', ResultFault.BAD_FIELD),
    "a metric with a newline": (b'{"score": 1, "metrics": {"a\\nb": 1}}', ResultFault.BAD_FIELD),
    "a metric with an endless name": (b'{"score": 1, "metrics": {"%s": 1}}' % (b"a" * 201), ResultFault.BAD_FIELD),
    "two scores": (b'{"score": 1, "metrics": {"score": 2}}', ResultFault.BAD_FIELD),
    "a task that is null": (b'{"score": 1, "tasks": {"a": null}}', ResultFault.BAD_FIELD),
    "a direction that is none": (b'{"score": 1, "tasks_meta": {"a": {"direction": "up"}}}', ResultFault.BAD_FIELD),
    "a direction as a list": (b'{"score": 1, "tasks_meta": {"a": {"direction": []}}}', ResultFault.BAD_FIELD),
    "notes as a list": (b'{"score": 1, "notes": []}', ResultFault.BAD_FIELD),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_t54_refused_by_code(name: str) -> None:
    """Each has its own fixed code, and no detail can act on a screen."""
    data, code = HOSTILE[name]
    assert fault({} if data is None else {"result.json": data}) is code


def test_every_code_is_met() -> None:
    """The table above and the one for metrics.csv leave no code untested."""
    assert {code for _, code in HOSTILE.values()} | {ResultFault.BAD_METRICS_CSV} == set(ResultFault)


# Of each way to be slow one; the others say the same at length.
SLOWEST = ("more lists than are read", "deep objects", "key twice further in", "endless integer", "notes as a list")


@pytest.mark.parametrize("name", [it if it in SLOWEST else pytest.param(it, marks=pytest.mark.slow) for it in HOSTILE])
def test_t54_soon(name: str) -> None:
    """The nastiest result of full size is refused in less than a second."""
    data = HOSTILE[name][0]

    def read() -> None:
        for piece in [] if data is None else [data, (data * (1 + (1 << 20) // (len(data) or 1)))[: 1 << 20]]:
            with pytest.raises(ResultRefused):
                parse_result({"result.json": piece})

    assert least_time(read, 2) < 2


def a_megabyte_of(piece: bytes) -> dict[str, bytes]:
    body = (piece * ((1 << 20) // len(piece) - 10)).removesuffix(b",")
    return {"result.json": b'{"score": 1, "x": [' + body + b"]}"}


def test_t54_many_small_values() -> None:
    """A full megabyte of small values is read in seconds, not in minutes."""
    files = a_megabyte_of(b'"\\"",1e9,')
    assert least_time(lambda: parse_result(files), 15) < 15


def test_t82_many_lists() -> None:
    """A full megabyte of lists and objects would keep every thread from its turn while they are made: refused."""
    for piece in (b"{},", b"[],", b'{"a":[]},'):
        with pytest.raises(ResultRefused, match="more than 50000 lists and objects"):
            parse_result(a_megabyte_of(piece))


def test_t45_only_the_detail_quotes_the_judge() -> None:
    """The code is one of a closed list; what the judge wrote is in the detail, for the user, alone."""
    with pytest.raises(ResultRefused) as refused:
        result({"score": 1, "metrics": {SECRET: "x"}})
    assert (SECRET in refused.value.detail, SECRET in refused.value.code) == (True, False)


def test_a_plain_result() -> None:
    """All fields, in plain types."""
    read = result(
        {
            "score": 3,
            "metrics": {"loss": 0.25, "score": 3},
            "tasks": {"a": 1, "b": 2.5},
            "tasks_meta": {"a": {"direction": "lower"}, "b": {"direction": "max"}, "c": {}},
            "notes": "well done",
        }
    )
    assert (read.score, read.valid, read.notes) == (3.0, True, "well done")
    assert read.metrics == {"loss": 0.25}
    assert read.values == {"score": 3.0, "loss": 0.25}
    assert read.tasks == {"a": 1.0, "b": 2.5}
    assert read.directions == {"a": Goal.LOWER, "b": Goal.HIGHER}
    assert isinstance(read.score, float)


def test_absent_and_null_are_the_same() -> None:
    """Optional fields may be null, as some languages write them. No solution needs no score: it is missing, not 0."""
    empty = result({"score": 1, "valid": None, "metrics": None, "tasks": None, "tasks_meta": None, "notes": None})
    assert empty == result({"score": 1})
    read = result({"valid": False, "notes": "overlaps"})
    assert (read.score, read.valid, read.values) == (None, False, {})
    assert result({"valid": False, "score": 0.5}).score == 0.5


def test_unknown_keys_are_listed() -> None:
    """Judges of other ecosystems write more; it costs nothing and is told."""
    assert result({"score": 1, "started_at": "now", "x\x1b": 1}).ignored == ("'started_at'", "'x\\x1b'")


def test_notes_are_cut() -> None:
    """Long notes do not cost the run, no NUL gets into a database, and brackets in them are no depth."""
    read = result({"score": 1, "notes": "\0" + '[{"' * 4_000})
    assert len(read.notes) == 4000
    assert read.notes.startswith("\ufffd[{")
    assert read.notes.endswith("…")


def test_counts_are_capped() -> None:
    """More tasks or metrics than the caps allow are refused."""
    many = {str(one): 1 for one in range(10_001)}
    assert fault({"result.json": json.dumps({"score": 1, "tasks": many}).encode()}) is ResultFault.BAD_FIELD
    assert fault({"result.json": json.dumps({"score": 1, "metrics": many}).encode()}) is ResultFault.BAD_FIELD
    assert fault({"result.json": GOOD}, Caps(result_bytes=5)) is ResultFault.TOO_LARGE


def test_files_beside_are_no_result() -> None:
    """Half-written files beside the result, and a result in a folder, are not read."""
    assert fault({"result.json.tmp": GOOD, ".result.json.x1": GOOD, "a/result.json": GOOD}) is ResultFault.MISSING


def test_the_last_row_fills_in() -> None:
    """metrics.csv supplies what `metrics` lacks, and never the score."""
    table = b"step,loss (lower is better),acc,score\n1,0.5,0.5,9\n2,0.25,0.75,99\n"
    read = result({"score": 1, "metrics": {"acc": 0.9}}, **{"metrics.csv": table})
    assert read.metrics == {"loss": 0.25, "acc": 0.9}
    assert read.score == 1
    assert read.series is not None
    assert [row.iteration for row in read.series.rows] == [1, 2]


def test_a_wrong_table_costs_the_result() -> None:
    """metrics.csv feeds the ranking, so a malformed one is refused; an empty one is none."""
    assert fault({"result.json": GOOD, "metrics.csv": b"step,a\n1,x\n"}) is ResultFault.BAD_METRICS_CSV
    assert parse_result({"result.json": GOOD, "metrics.csv": b""}).series is None
