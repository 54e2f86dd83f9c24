"""Cheats that a judge must not fall for, made from the outputs of the honest baseline.

Each is what a candidate could leave behind without solving anything. `check` judges them like any candidate: one that
comes out better than the baseline shows a hole in the judge. Nothing here runs; whether a cheat won is the caller's to
decide, by the task's own ranking.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.metric import Goal, Metric
from orchestrator.judge.rewriting import Document, Fill, Json, npy_bytes, opened

_LARGE = 1e9
_DEEP = b"[" * 100_000 + b"]" * 100_000
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".dill")
# unittest.mock.ANY, pickled: it is equal to everything, and loading it runs nothing else.
_EQUAL_TO_ALL = b"cunittest.mock\nANY\n."
_MODULES = ("conftest", "csv", "json", "math", "numpy", "pandas", "random", "scipy", "sitecustomize", "statistics")


@dataclass(frozen=True)
class Oracle:
    """`why` says what is wrong if it wins. Without `proof` a win may be honest: there are tasks that zeros solve."""

    name: str
    outputs: Mapping[str, bytes]
    why: str
    proof: bool = True


def oracles(baseline: Mapping[str, bytes], metrics: Sequence[Metric] = (Metric(),)) -> list[Oracle]:
    """All that differ from the baseline and from each other, the plainest first."""
    documents = {name: opened(data) for name, data in baseline.items()}
    forged = _forged(baseline, documents, metrics)
    made = [*_absent(baseline), *forged, *_refills(documents), *_misshapen(baseline, documents)]
    seen = [dict(baseline)]
    kept = []
    for oracle in made:
        if oracle.outputs not in seen:
            seen.append(dict(oracle.outputs))
            kept.append(oracle)
    return kept


def _absent(baseline: Mapping[str, bytes]) -> list[Oracle]:
    return [
        Oracle("no output", {}, "the judge scores a candidate that left nothing"),
        Oracle("empty files", dict.fromkeys(baseline, b""), "the judge scores files that are there but empty"),
    ]


def _forged(
    baseline: Mapping[str, bytes], documents: Mapping[str, Document], metrics: Sequence[Metric]
) -> list[Oracle]:
    values = {metric.name: _wished(metric) for metric in metrics}
    score = values.get("score", _wished(metrics[0]) if metrics else _LARGE)
    result = {"score": score, "valid": True, "metrics": values, "tasks": {"1": score}}
    text = json.dumps(result).encode()
    row = ",".join(["1", *(repr(value) for value in values.values())])
    table = f"{','.join(['iteration', *values])}\n{row}\n".encode()
    trace = json.dumps({"task_id": "1", "score": score, "status": "passed"}).encode()
    seeded = {"result.json": text, "score.json": text, "metrics.csv": table, "traces/task_1.json": trace}
    claims = {**result, **values, "passed": True, "correct": True}
    claiming = {name: it.claiming(claims) for name, it in documents.items() if isinstance(it, Json)}
    return [
        Oracle("result beside", {**baseline, **seeded}, "the judge takes a score from a file that the candidate left"),
        Oracle("result instead", seeded, "the judge takes a score from a file that the candidate left"),
        Oracle(
            "score in the output",
            {**baseline, **claiming},
            "the judge believes a score, or a word like passed, inside the candidate's own output",
        ),
        Oracle(
            "planted modules",
            {**baseline, **dict.fromkeys((f"{name}.py" for name in _MODULES), _module(text.decode()))},
            "the judge imports Python modules from the folder of outputs",
        ),
    ]


def _wished(metric: Metric) -> float:
    """As good as can be without being refused for it."""
    if metric.ceiling is not None:
        return metric.ceiling
    return _LARGE if metric.goal is Goal.HIGHER else -_LARGE


def _module(result: str) -> bytes:
    """Runs only in a judge that imports it, in the judge's own chamber: publishes a result and ends the process."""
    lines = [
        "import os",
        "path = os.environ.get('BLASTDOOR_RESULT_PATH')",
        "if path:",
        "    with open(path, 'w') as file:",
        f"        file.write({result!r})",
        "    os._exit(0)",
    ]
    return "\n".join([*lines, ""]).encode()


def _refills(documents: Mapping[str, Document]) -> list[Oracle]:
    refused = "the judge scores numbers that are none: refuse what is not finite before computing with it"
    ranges = "the judge has no limits on the numbers that it takes"
    fixed = "a constant does better than the baseline: the score may not measure what is wanted"
    types = "the judge takes other types for numbers"
    table: list[tuple[str, Fill, str, bool]] = [
        ("NaN", lambda _old, _place: math.nan, refused, True),
        ("NaN first, the rest large", lambda _old, place: _LARGE if place else math.nan, refused, True),
        ("NaN twice, the rest large", lambda _old, place: _LARGE if place > 1 else math.nan, refused, True),
        ("infinity", lambda _old, _place: math.inf, refused, True),
        ("minus infinity", lambda _old, _place: -math.inf, refused, True),
        ("huge", lambda _old, _place: 1e308, ranges, True),
        ("huge, negative", lambda _old, _place: -1e308, ranges, True),
        ("an integer of 401 digits", lambda _old, _place: 10**400, ranges, True),
        ("large", lambda _old, _place: _LARGE, ranges, False),
        ("large, negative", lambda _old, _place: -_LARGE, ranges, False),
        ("a thousand times as much", lambda old, _place: 1000 * old, ranges, False),
        ("the other sign", lambda old, _place: -old, ranges, False),
        ("zeros", lambda _old, _place: 0, fixed, False),
        ("ones", lambda _old, _place: 1, fixed, False),
        ("texts for numbers", lambda _old, _place: "nan", types, True),
        ("lists for numbers", lambda _old, _place: [], types, True),
        ("booleans for numbers", lambda _old, _place: True, types, False),
    ]
    return [
        Oracle(name, {path: document.refilled(fill) for path, document in documents.items()}, why, proof)
        for name, fill, why, proof in table
    ]


def _misshapen(baseline: Mapping[str, bytes], documents: Mapping[str, Document]) -> list[Oracle]:
    cut = "the judge scores what is there of a file that is not whole"
    twice = "the judge counts what is given twice"
    unpickled = "the judge unpickles what the candidate left: that runs the candidate's code beside the answers"
    deep = "the judge scores a file that it cannot have understood"
    nested = {name: _DEEP for name, document in documents.items() if isinstance(document, Json)}
    pickles = {name: _EQUAL_TO_ALL for name in baseline if name.lower().endswith(_PICKLE_ENDINGS)}
    arrays = {name: npy_bytes("|O", (1,), _EQUAL_TO_ALL) for name in baseline if name.lower().endswith(".npy")}
    return [
        Oracle("cut in half", {name: data[: len(data) // 2] for name, data in baseline.items()}, cut, proof=False),
        Oracle("every row twice", {name: it.doubled() for name, it in documents.items()}, twice, proof=False),
        Oracle("nested deeply", {**baseline, **nested}, deep),
        Oracle("a pickled object", {**baseline, **pickles, **arrays}, unpickled),
        Oracle("zero bytes", {name: bytes(len(data)) for name, data in baseline.items()}, deep),
    ]
