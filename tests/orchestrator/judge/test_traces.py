"""Traces inform; they never cost a run."""

import json

from orchestrator.judge.bounds import Caps
from orchestrator.judge.traces import Trace, read_traces


def written(*traces: object) -> dict[str, bytes]:
    return {f"traces/task_{place}.json": json.dumps(trace).encode() for place, trace in enumerate(traces)}


def test_a_whole_trace() -> None:
    """All fields; what is not known is left alone. A number for an id and a list for a log are what others write."""
    started = "2026-01-01T00:00:00+00:00"
    fields = {"task_id": "t1", "score": 0.5, "status": "failed", "summary": "half", "failure_reason": "wrong_answer"}
    fields |= {"log": "a\nb", "started_at": started, "ended_at": 12.5, "cost": {"usd": 1}}
    other = {"task_id": 7, "score": 1, "log": ["start", {"event": "end"}]}
    assert read_traces(written(fields, other)) == (
        (
            Trace("t1", 0.5, "failed", "half", "wrong_answer", "a\nb", started, "12.5"),
            Trace("7", 1.0, log='start\n{"event": "end"}'),
        ),
        0,
    )


def test_t54_bad_ones_are_counted() -> None:
    """Whatever is wrong with a trace, the others are read and nothing is raised."""
    outputs = written({"task_id": "good", "score": 1})
    bad_ones = [
        *(b"", b"[" * 100_000, b"\xff", b"[]", b'{"task_id": "a"}', b'{"task_id": true, "score": 1}'),
        *(b'{"task_id": "a", "score": %s}' % score for score in (b"NaN", b'"1"', b"false", b"1" * 100_000)),
        *(b'{"task_id": "%s", "score": 1}' % name for name in (b"", b"a" * 201)),
        b'{"task_id": "a", "score": 1, "log": "' + b"a" * (256 << 10) + b'"}',
    ]
    outputs |= {f"traces/bad{at}.json": data for at, data in enumerate(bad_ones)}
    traces, bad = read_traces(outputs)
    assert [trace.task_id for trace in traces] == ["good"]
    assert bad == 13


def test_other_files_are_none() -> None:
    """Only JSON files that lie in the folder itself."""
    good = b'{"task_id": "a", "score": 1}'
    names = ["traces/.task_a.json.x1", "traces/deep/a.json", "a.json", "traces.json", "traces/log.txt"]
    assert read_traces(dict.fromkeys(names, good)) == ((), 0)


def test_caps() -> None:
    """Too many, or too much together: the rest is counted as dropped."""
    outputs = written(*({"task_id": str(one), "score": 1} for one in range(10)))
    traces, bad = read_traces(outputs, Caps(traces=4))
    assert (len(traces), bad) == (4, 6)
    size = len(outputs["traces/task_0.json"])
    traces, bad = read_traces(outputs, Caps(traces_bytes=3 * size))
    assert (len(traces), bad) == (3, 7)


def test_long_texts() -> None:
    """Of a summary the beginning is kept, of a log the end; a NUL becomes visible."""
    (trace,), _ = read_traces(written({"task_id": "a", "score": 1, "summary": "s" * 5000, "log": "x" * 50_000 + "\0"}))
    assert trace.summary == "s" * 1000
    assert trace.log == "x" * 19_999 + "\ufffd"
