"""Traces: one small JSON file per task, written by the judge as each task finishes.

They are for people who look into a run; no score is taken from them. So a malformed one is dropped and counted, and
never costs the run: the judge may have been killed in the middle of one, and other ecosystems add fields of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.judge.bounds import DEFAULT_CAPS, Caps, ResultRefused
from orchestrator.judge.json_bounds import loads

_FOLDER = "traces/"
_SUFFIX = ".json"
_TEXT_CHARACTERS = 1_000


@dataclass(frozen=True)
class Trace:
    task_id: str
    score: float
    status: str | None = None
    summary: str | None = None
    failure_reason: str | None = None
    log: str | None = None
    started_at: str | None = None
    ended_at: str | None = None


def read_traces(outputs: Mapping[str, bytes], caps: Caps = DEFAULT_CAPS) -> tuple[tuple[Trace, ...], int]:
    """The good ones in the order of their names, and how many were dropped. Never raises."""
    names = sorted(name for name in outputs if _is_trace(name))
    traces: list[Trace] = []
    room = caps.traces_bytes
    for name in names[: caps.traces]:
        data = outputs[name]
        room -= len(data)
        trace = _trace(data, caps) if room >= 0 else None
        if trace is not None:
            traces.append(trace)
    return tuple(traces), len(names) - len(traces)


def _is_trace(name: str) -> bool:
    return name.startswith(_FOLDER) and name.endswith(_SUFFIX) and name.count("/") == 1


def _trace(data: bytes, caps: Caps) -> Trace | None:
    try:
        fields = loads(data, max_bytes=caps.trace_bytes, max_depth=caps.depth, max_digits=caps.digits)
    except ResultRefused:
        return None
    if not isinstance(fields, dict):
        return None
    task, score = fields.get("task_id"), fields.get("score")
    if isinstance(task, bool) or not isinstance(task, str | int) or isinstance(score, bool):
        return None
    if not isinstance(score, int | float) or not 0 < len(str(task)) <= caps.name_characters:
        return None
    return Trace(
        task_id=_plain(str(task)),
        score=float(score),
        status=_text(fields.get("status")),
        summary=_text(fields.get("summary")),
        failure_reason=_text(fields.get("failure_reason")),
        log=_log(fields.get("log"), caps.log_characters),
        started_at=_text(fields.get("started_at")),
        ended_at=_text(fields.get("ended_at")),
    )


def _text(value: object) -> str | None:
    """Clocks come as numbers too; whatever else is no text is written as JSON."""
    if value is None:
        return None
    return _plain(value if isinstance(value, str) else _written(value))[:_TEXT_CHARACTERS]


def _log(value: object, limit: int) -> str | None:
    """Of a long log the end is kept: that is where it says what went wrong. A list is one entry per line."""
    if value is None:
        return None
    entries = value if isinstance(value, list) else [value]
    whole = "\n".join(entry if isinstance(entry, str) else _written(entry) for entry in entries)
    return _plain(whole[-limit:])


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(text: str) -> str:
    """Not every database takes a NUL in a text."""
    return text.replace("\0", "\ufffd")
