"""What a judge's chamber gave back, as plain values or as a typed refusal.

The same parser reads the result of any judge, in any language: a JSON object with a finite `score`, and beside it
`metrics`, `tasks`, `tasks_meta`, `valid` and `notes`. Keys that are not known here are left alone and listed, since
judges of other ecosystems write some; keys that are known must be right, since half a result is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.bounded_json import quoted
from orchestrator.domain.metric import Goal
from orchestrator.judge.bounds import DEFAULT_CAPS, Caps, ResultFault, ResultRefused
from orchestrator.judge.json_bounds import loads
from orchestrator.judge.metrics_csv import Series, parse
from orchestrator.judge.traces import Trace, read_traces

__all__ = ["DEFAULT_CAPS", "METRICS", "Caps", "Result", "ResultFault", "ResultRefused", "parse_result"]

RESULT = "result.json"
METRICS = "metrics.csv"

_KNOWN = {"score", "valid", "metrics", "tasks", "tasks_meta", "notes"}
_IGNORED_LISTED = 100
_GOALS = {
    "higher": Goal.HIGHER,
    "max": Goal.HIGHER,
    "maximize": Goal.HIGHER,
    "lower": Goal.LOWER,
    "min": Goal.LOWER,
    "minimize": Goal.LOWER,
}


@dataclass(frozen=True)
class Result:
    """`score` is None only where `valid` is false: a candidate without a solution has no score, not a bad one."""

    score: float | None
    valid: bool = True
    metrics: dict[str, float] = field(default_factory=dict)
    tasks: dict[str, float] = field(default_factory=dict)
    directions: dict[str, Goal] = field(default_factory=dict)
    notes: str = ""
    series: Series | None = None
    traces: tuple[Trace, ...] = ()
    bad_traces: int = 0
    ignored: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Every number that may be ranked: the metrics, and the score under its own name."""
        return self.metrics if self.score is None else {"score": self.score, **self.metrics}


def parse_result(outputs: Mapping[str, bytes], *, caps: Caps = DEFAULT_CAPS) -> Result:
    """Read result.json, metrics.csv and traces/ of a judge's outputs. Raises ResultRefused and nothing else.

    Text in the result may hold control characters: a view that shows it escapes it.
    """
    document = _document(outputs, caps)
    valid = _valid(document.get("valid"))
    score = _score(document, valid)
    metrics = _numbers(document, "metrics", caps.metrics, caps)
    if metrics.pop("score", score) != score and score is not None:
        raise _bad("metrics.score differs from score")
    series = _series(outputs, caps)
    tasks = _numbers(document, "tasks", caps.tasks, caps)
    traces, bad_traces = read_traces(outputs, caps)
    last = {name: value for name, value in series.last().items() if name != "score"} if series else {}
    return Result(
        score=score,
        valid=valid,
        metrics={**last, **metrics},
        tasks=tasks,
        directions=_directions(document.get("tasks_meta"), caps),
        notes=_notes(document.get("notes"), caps.notes_characters),
        series=series,
        traces=traces,
        bad_traces=bad_traces,
        ignored=tuple(quoted(key) for key in document if key not in _KNOWN)[:_IGNORED_LISTED],
    )


def _document(outputs: Mapping[str, bytes], caps: Caps) -> dict[str, object]:
    data = outputs.get(RESULT)
    if data is None:
        raise ResultRefused(ResultFault.MISSING, f"the judge wrote no {RESULT}")
    if not data:
        raise ResultRefused(ResultFault.EMPTY, f"the judge claimed {RESULT} and ended before it was written")
    try:
        document = loads(data, max_bytes=caps.result_bytes, max_depth=caps.depth, max_digits=caps.digits)
    except ResultRefused as refused:
        if refused.code is ResultFault.NOT_FINITE and refused.where == ("score",):
            raise ResultRefused(ResultFault.SCORE_NOT_FINITE, refused.detail, refused.where) from None
        raise
    if not isinstance(document, dict):
        raise ResultRefused(ResultFault.NOT_OBJECT, f"a JSON object is wanted, not {_kind(document)}")
    return document


def _valid(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, bool):
        raise _bad(f"valid is true or false, not {_kind(value)}")
    return value


def _score(document: Mapping[str, object], valid: bool) -> float | None:
    given = document.get("score")
    if given is None and not valid:
        return None
    if "score" not in document:
        raise ResultRefused(ResultFault.NO_SCORE, "the result has no score")
    score = _number(given)
    if score is None:
        raise ResultRefused(ResultFault.SCORE_NOT_NUMBER, f"score is {_kind(given)}")
    return score


def _numbers(document: Mapping[str, object], key: str, most: int, caps: Caps) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, value in _members(document.get(key), key, most, caps).items():
        number = _number(value)
        if number is None:
            raise _bad(f"{key}.{quoted(name)} is {_kind(value)}, not a number")
        numbers[name] = number
    return numbers


def _directions(value: object, caps: Caps) -> dict[str, Goal]:
    goals: dict[str, Goal] = {}
    for name, about in _members(value, "tasks_meta", caps.tasks, caps).items():
        said = about.get("direction") if isinstance(about, dict) else about
        if isinstance(about, dict) and said is None:
            continue
        if not isinstance(said, str) or said not in _GOALS:
            raise _bad(f"tasks_meta.{quoted(name)}: direction is neither higher nor lower")
        goals[name] = _GOALS[said]
    return goals


def _members(value: object, key: str, most: int, caps: Caps) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad(f"{key} is an object, not {_kind(value)}")
    if len(value) > most:
        raise _bad(f"{key} has {len(value)} members, at most {most} are read")
    for name in value:
        if not 0 < len(name) <= caps.name_characters or not name.isprintable():
            raise _bad(f"{key}: {quoted(name)} is no plain name of at most {caps.name_characters} characters")
    return value


def _notes(value: object, limit: int) -> str:
    """Long notes are cut, not refused: they are for reading, and no reason to lose a run."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _bad(f"notes is a text, not {_kind(value)}")
    kept = value.replace("\0", "\ufffd")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _series(outputs: Mapping[str, bytes], caps: Caps) -> Series | None:
    """Unlike a trace it feeds the ranking, so a malformed one is refused; an empty one is as good as none."""
    data = outputs.get(METRICS)
    return parse(data, caps) if data else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _kind(value: object) -> str:
    names = {bool: "a boolean", str: "a text", list: "a list", dict: "an object", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _bad(detail: str) -> ResultRefused:
    return ResultRefused(ResultFault.BAD_FIELD, detail)
