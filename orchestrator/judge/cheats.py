"""Outputs that solve nothing, made from those of the honest baseline. Nothing here runs.

Each function makes what one adversary of the table (adversaries.py) leaves behind: one set of files, or several that
differ a little, by what tells them apart. The judge is given them like any candidate's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.domain.metric import Goal, Metric
from orchestrator.judge.guest.blastdoor_twists import FILLS, PICKS
from orchestrator.judge.rewriting import MOST_BYTES, Document, Json, Opaque, Table, npy_bytes, opened

_LARGE = 1e9
_DEEP = b"[" * 100_000 + b"]" * 100_000
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".dill")
_PICKLE_START = b"\x80"
# unittest.mock.ANY, pickled: it is equal to everything, and loading it runs nothing else.
_EQUAL_TO_ALL = b"cunittest.mock\nANY\n."
_MODULES = ("conftest", "csv", "json", "math", "numpy", "pandas", "random", "scipy", "sitecustomize", "statistics")
_WHOLE = {"an empty object": b"{}", "an empty list": b"[]", "nothing": b"null", "true": b"true", "zero": b"0"}
_OTHER_TASKS = {
    "labels": (b'{"predictions": [1, 0, 1], "labels": [1, 0, 1]}', b"id,label\n1,1\n2,0\n"),
    "circles": (b'{"circles": [[0.5, 0.5, 0.5]], "sum_radii": 2.7}', b"x,y,r\n0.5,0.5,0.5\n"),
}

# The same as a function would answer them.
ANSWERS_OF_OTHER_TASKS: dict[str, object] = {
    "labels": [1, 0, 1],
    "circles": {"circles": [[0.5, 0.5, 0.5]], "sum_radii": 2.7},
    "text": "solved",
}

Outputs = Mapping[str, bytes]
Variants = Mapping[str, Outputs]


@dataclass(frozen=True)
class Recording:
    """What an honest baseline left, and what it was given to read."""

    outputs: Outputs
    metrics: Sequence[Metric] = (Metric(),)
    inputs: Outputs = field(default_factory=dict)

    @cached_property
    def documents(self) -> Mapping[str, Document]:
        return {name: opened(data) for name, data in self.outputs.items()}

    @property
    def wished(self) -> dict[str, float]:
        """Of each metric, as good as can be without being refused for it."""
        return {metric.name: _wished(metric) for metric in self.metrics}

    @property
    def claims(self) -> dict[str, object]:
        """What a candidate might say of itself."""
        return {**_result(self), **self.wished, "passed": True, "correct": True}


Forge = Callable[[Recording], Variants]


def nothing(_: Recording) -> Variants:
    return {"": {}}


def empty_files(it: Recording) -> Variants:
    return {"": dict.fromkeys(it.outputs, b"")}


def zero_bytes(it: Recording) -> Variants:
    return {"": {name: bytes(len(data)) for name, data in it.outputs.items()}}


def cut_in_half(it: Recording) -> Variants:
    return {"": {name: data[: len(data) // 2] for name, data in it.outputs.items()}}


def one_file_missing(it: Recording) -> Variants:
    names = list(it.outputs)[:8] if len(it.outputs) > 1 else []
    return {name: {other: data for other, data in it.outputs.items() if other != name} for name in names}


def filled(fill: str) -> Forge:
    """Other numbers; where there are whole ones beside fractions, once without and once with them."""

    def forge(it: Recording) -> Variants:
        found = {"": {name: document.refilled(FILLS[fill]) for name, document in it.documents.items()}}
        every = {name: document.refilled(FILLS[fill], whole=True) for name, document in it.documents.items()}
        return found if every == found[""] else {**found, "whole numbers too": every}

    return forge


def picked(*picks: str) -> Forge:
    """Other rows, or other members of lists."""

    def forge(it: Recording) -> Variants:
        made = {pick: {name: document.picked(PICKS[pick]) for name, document in it.documents.items()} for pick in picks}
        return made if len(picks) > 1 else {"": made[picks[0]]}

    return forge


def result_beside(it: Recording) -> Variants:
    return {"": {**it.outputs, **_seeded(it)}}


def result_instead(it: Recording) -> Variants:
    return {"": _seeded(it)}


def claims_inside(it: Recording) -> Variants:
    """In objects as members, in texts as lines."""
    claims = it.claims
    words = [f"{name}: {value}" for name, value in it.wished.items()]
    lines = "\n".join([*words, "score: 1000000000", "accuracy: 1.0", "1000 passed, 0 failed", "ALL TESTS PASSED", "OK"])

    def claiming(document: Document, data: bytes) -> bytes:
        if isinstance(document, Json):
            return document.claiming(claims)
        is_text = isinstance(document, Opaque) and data and len(data) <= MOST_BYTES and b"\0" not in data
        return f"{lines}\n".encode() + data + f"\n{lines}\n".encode() if is_text else data

    return {"": {name: claiming(document, it.outputs[name]) for name, document in it.documents.items()}}


def one_field_alone(it: Recording) -> Variants:
    """Each named number by itself as good as can be, whichever way that is; all others stay as they were."""
    found = {}
    for path, document in it.documents.items():
        if isinstance(document, Json):
            for name in document.fields:
                for value in (0, _LARGE, -_LARGE):
                    found[f"{name} = {value:g}"] = {**it.outputs, path: document.with_field(name, value)}
    return found


def planted_modules(it: Recording) -> Variants:
    code = _publishing(json.dumps(_result(it)))
    return {"": {**it.outputs, **dict.fromkeys((f"{name}.py" for name in _MODULES), code.encode())}}


def code_for_data(it: Recording) -> Variants:
    """Runs only in a judge that evaluates it, in the judge's own chamber."""
    code = _publishing(json.dumps(_result(it)))
    text = f"exec({code!r})".encode()
    texts = {name: text for name, data in it.outputs.items() if _is_text(data)}
    pickled = f"cbuiltins\nexec\n(V{code.encode('unicode_escape').decode()}\ntR.".encode()
    pickles = {name: pickled for name, data in it.outputs.items() if _is_pickle(name, data)}
    return {"": {**it.outputs, **texts, **pickles}}


def pickled_object(it: Recording) -> Variants:
    pickles = {name: _EQUAL_TO_ALL for name, data in it.outputs.items() if _is_pickle(name, data)}
    arrays = {name: npy_bytes("|O", (1,), _EQUAL_TO_ALL) for name in it.outputs if name.lower().endswith(".npy")}
    return {"": {**it.outputs, **pickles, **arrays}}


def nested_deeply(it: Recording) -> Variants:
    return {"": {**it.outputs, **{name: _DEEP for name, found in it.documents.items() if isinstance(found, Json)}}}


def whole_values(it: Recording) -> Variants:
    """The plainest JSON values in place of every JSON file."""
    names = [name for name, found in it.documents.items() if isinstance(found, Json)]
    return {word: {**it.outputs, **dict.fromkeys(names, data)} for word, data in _WHOLE.items() if names}


def of_another_task(it: Recording) -> Variants:
    def other(document: Document, data: bytes, json_text: bytes, table: bytes) -> bytes:
        return json_text if isinstance(document, Json) else table if isinstance(document, Table) else data

    return {
        word: {name: other(found, it.outputs[name], *texts) for name, found in it.documents.items()}
        for word, texts in _OTHER_TASKS.items()
    }


def comments_only(it: Recording) -> Variants:
    """Every word of a text is still there, and does nothing."""

    def commented(data: bytes) -> bytes:
        return b"".join(b"# " + line for line in data.splitlines(keepends=True))

    found = it.documents.items()
    return {
        "": {name: commented(it.outputs[name]) if _is_words(document) else it.outputs[name] for name, document in found}
    }


def input_copied(it: Recording) -> Variants:
    """What a program leaves that only copies what it was given; of the same ending where there is one."""

    def given(name: str) -> bytes:
        ending = name.rpartition(".")[2]
        alike = [data for path, data in it.inputs.items() if path.rpartition(".")[2] == ending]
        return (alike or list(it.inputs.values()))[0]

    return {"": {name: given(name) for name in it.outputs}} if it.inputs else {}


def _result(it: Recording) -> dict[str, object]:
    values = it.wished
    score = values.get("score", next(iter(values.values()), _LARGE))
    return {"score": score, "valid": True, "metrics": values, "tasks": {"1": score}}


def _seeded(it: Recording) -> dict[str, bytes]:
    result = _result(it)
    text = json.dumps(result).encode()
    row = ",".join(["1", *(repr(value) for value in it.wished.values())])
    table = f"{','.join(['iteration', *it.wished])}\n{row}\n".encode()
    trace = json.dumps({"task_id": "1", "score": result["score"], "status": "passed"}).encode()
    return {"result.json": text, "score.json": text, "metrics.csv": table, "traces/task_1.json": trace}


def _wished(metric: Metric) -> float:
    if metric.ceiling is not None:
        return metric.ceiling
    return _LARGE if metric.goal is Goal.HIGHER else -_LARGE


def _publishing(result: str) -> str:
    """Runs only in a judge that imports or evaluates it: publishes a result and ends the process."""
    lines = [
        "import os",
        "path = os.environ.get('BLASTDOOR_RESULT_PATH')",
        "if path:",
        "    with open(path, 'w') as file:",
        f"        file.write({result!r})",
        "    os._exit(0)",
    ]
    return "\n".join([*lines, ""])


def _is_pickle(name: str, data: bytes) -> bool:
    return name.lower().endswith(_PICKLE_ENDINGS) or data.startswith(_PICKLE_START)


def _is_text(data: bytes) -> bool:
    return bool(data) and len(data) <= MOST_BYTES and b"\0" not in data and not data.startswith(_PICKLE_START)


def _is_words(document: Document) -> bool:
    return isinstance(document, Opaque) and _is_text(document.data)
