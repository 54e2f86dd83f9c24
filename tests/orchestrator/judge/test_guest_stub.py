"""An evaluator that wants the path of a program, run by the module that a judge has for it.

The candidate is the real module that serves one, in a thread; between both stands a channel of queues.
"""

import importlib
import json
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.judge.guest.blastdoor_values import MAX_DEPTH, decode, encode
from orchestrator.judge.helpers import GUEST

BY_SPEC = """
import importlib.util
import types

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
"""
EVALUATE = (
    BY_SPEC
    + """
def evaluate(program_path):
    try:
        return {"combined_score": load(program_path).solve(20) + 1.5}
    except Exception as error:
        return {"combined_score": 0.0, "error": str(error)}
"""
)
KEEP = """
def keep(program):
    import sys
    sys.modules["evaluation_module_kept"].append(program)
    return program
"""
Functions = dict[str, Callable[..., Any]]
BOTH = ("solve", "fail")


class Channel:
    """The orchestrator as a judge sees it; what it wishes of the candidate goes there and comes back."""

    def __init__(self, functions: Functions) -> None:
        candidate = importlib.import_module("blastdoor_candidate")
        self.ended = importlib.import_module("blastdoor_frames").Ended
        self.finished: dict[str, bytes] | None = None
        self._asked: SimpleQueue[bytes | None] = SimpleQueue()
        self._answered: SimpleQueue[bytes] = SimpleQueue()
        self._next = b"B" + encode({"median": 0.001, "jitter": 0.001, "functions": sorted(functions)})
        served = _Served(self._asked, self._answered, self.ended)

        def serve() -> None:
            with suppress(self.ended):
                candidate._answer_all(served, lambda: functions)

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        self._ask(b"L")

    def receive(self) -> tuple[bytes, memoryview]:
        return b"", memoryview(self._next)

    def send(self, _: bytes, *parts: bytes) -> None:
        wish = b"".join(parts)
        if wish[:1] == b"F":
            self.finished = decode(wish[1:])
        else:
            self._next = b"R" + struct.pack("<d", 0.002) + self._ask(wish)

    def _ask(self, request: bytes) -> bytes:
        self._asked.put(request)
        return self._answered.get()

    def close(self) -> None:
        self._asked.put(None)
        self._thread.join()

    @property
    def result(self) -> dict[str, Any]:
        assert self.finished is not None
        found: dict[str, Any] = json.loads(self.finished["result.json"])
        return found


class _Served:
    """The candidate's end."""

    def __init__(self, asked: "SimpleQueue[bytes | None]", answered: "SimpleQueue[bytes]", ended: type) -> None:
        self._asked, self._answered, self._ended = asked, answered, ended

    def receive(self) -> tuple[bytes, memoryview]:
        request = self._asked.get()
        if request is None:
            raise self._ended
        return b"", memoryview(request)

    def send(self, _: bytes, *parts: bytes) -> None:
        self._answered.put(b"".join(parts))


Judge = Callable[..., Channel]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """Runs an evaluator on functions and gives the channel, with what was handed over."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(GUEST), *sys.path])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for name in (
        "BLASTDOOR_STUB_SOCKET",
        "BLASTDOOR_STUB_ENUMS",
        "BLASTDOOR_STUB_FIELDS",
        "EVO_RESULT_PATH",
        "PYTHONPATH",
    ):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("BLASTDOOR_SEED", "7")
    for name, place in {"RESULT_PATH": "result.json", "TRACES_DIR": "traces", "METRICS_PATH": "m.csv"}.items():
        monkeypatch.setenv(f"BLASTDOOR_{name}", str(tmp_path / "out" / place))
    opened: list[Channel] = []

    def run(
        evaluator: str,
        functions: Functions | None = None,
        wanted: Sequence[str] = ("solve",),
        system: str = "openevolve",
        **more: Any,
    ) -> Channel:
        (tmp_path / "evaluator.py").write_text(evaluator)
        channel = Channel({"solve": lambda x: 2 * x} if functions is None else functions)
        opened.append(channel)
        monkeypatch.setattr(importlib.import_module("blastdoor_relay"), "Frames", lambda: channel)
        judging = importlib.import_module(f"blastdoor_{system}")
        said = {"metric": "combined_score", **more}
        judging.judge(evaluator=str(tmp_path / "evaluator.py"), functions=wanted, **said)
        return channel

    yield run
    for channel in opened:
        channel.close()
    for name in set(sys.modules) - before:
        if name.startswith(("blastdoor_", "evaluation_module", "openevolve", "shinka")):
            del sys.modules[name]


LOADERS = {
    "an import by its spec": "program = load(program_path)",
    "an import by its name": (
        "import os, sys; sys.path.insert(0, os.path.dirname(program_path));"
        " program = __import__(os.path.basename(program_path)[:-3]); sys.path.pop(0)"
    ),
    "exec": "n = {}; exec(open(program_path).read(), n); program = types.SimpleNamespace(solve=n['solve'])",
    "runpy": "import runpy; program = types.SimpleNamespace(**runpy.run_path(program_path))",
}


@pytest.mark.parametrize("how", LOADERS)
def test_every_way_to_load_a_program(judge: Judge, how: str) -> None:
    """However an evaluator loads the program, its functions are calls of the candidate."""
    body = f"def evaluate(program_path):\n    {LOADERS[how]}\n    return {{'combined_score': program.solve(21)}}\n"
    assert judge(BY_SPEC + body).result["score"] == 42


def test_a_python_that_the_evaluator_starts(judge: Judge) -> None:
    """Another process finds the candidate through the stub as well, and learns what went wrong."""
    child = """
import runpy, sys
program = runpy.run_path(sys.argv[1])
try:
    program["fail"]()
except Exception as error:
    assert "no luck" in str(error), error
print(program["solve"](4))
"""
    evaluator = f"""
import subprocess, sys
def evaluate(program_path):
    told = subprocess.run([sys.executable, "-c", {child!r}, program_path], capture_output=True, check=True, timeout=300)
    return {{"combined_score": float(told.stdout)}}
"""

    def fail() -> None:
        raise ValueError("no luck")

    result = judge(evaluator, {"solve": lambda x: 2 * x, "fail": fail}, BOTH).result
    assert result["score"] == 8
    assert "1 of 2 calls failed" in result["notes"]


class Solver:
    """What a program may define."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def solve(self, x: float) -> float:
        return self.factor * x


def test_values_arrive_as_what_they_were(judge: Judge) -> None:
    """Keywords and tuples cross, and an object of a class that was named can be held and called."""
    evaluator = (
        BY_SPEC
        + """
def evaluate(program_path):
    program = load(program_path)
    assert program.pair(1, right=2) == (1, 2)
    solver = program.Solver(factor=3)
    return {"combined_score": solver.solve(5)}
"""
    )
    offered: Functions = {"pair": lambda left, right: (left, right), "Solver": Solver}
    channel = judge(evaluator, offered, wanted=["pair"], classes=["Solver"])
    assert channel.result["score"] == 15


class Broken:
    """What fails in each of its methods."""

    def solve(self) -> float:
        raise ValueError("no luck")


WITHIN = (
    BY_SPEC
    + """
def evaluate(program_path):
    program = load(program_path)
    for broken in program.make()["broken"]:
        try:
            broken.solve()
        except ValueError:
            pass
    return {"combined_score": 1.0}
"""
)


def test_objects_within_answers_are_called_through_the_door(judge: Judge) -> None:
    """A method of an object counts as a call, and its error as a failure, wherever in an answer the object stood."""
    offered: Functions = {"make": lambda: {"broken": [Broken(), Broken()]}, "Broken": Broken}
    result = judge(WITHIN, offered, wanted=["make"], classes=["Broken"]).result
    assert "2 of 3 calls failed, the first: Broken.solve: ValueError: no luck" in result["notes"]


OBJECTS_SENT = {
    "as an argument": "program.ask(solver)",
    "as a keyword": "program.ask(solver=solver)",
    "in a list": "program.first([solver])",
    "in a keyword": "program.first(several=(solver,))",
}


@pytest.mark.parametrize("how", OBJECTS_SENT)
def test_objects_go_back_to_the_candidate(judge: Judge, how: str) -> None:
    """An object of the candidate's is an argument like others."""
    body = f"    solver = program.Solver(factor=3)\n    return {{'combined_score': {OBJECTS_SENT[how]}}}\n"
    offered: Functions = {
        "Solver": Solver,
        "ask": lambda solver: solver.solve(5),
        "first": lambda several: several[0].solve(5),
    }
    evaluator = BY_SPEC + "def evaluate(path):\n    program = load(path)\n" + body
    assert judge(evaluator, offered, wanted=["ask", "first"], classes=["Solver"]).result["score"] == 15


def in_a_child(script: str) -> str:
    """An evaluator whose score is what another Python prints that has the program."""
    child = f"import runpy, sys\nprogram = runpy.run_path(sys.argv[1])\n{script}"
    return f"""
import subprocess, sys
def evaluate(program_path):
    told = subprocess.run([sys.executable, "-c", {child!r}, program_path], capture_output=True, check=True, timeout=300)
    return {{"combined_score": float(told.stdout)}}
"""


def test_objects_in_a_process_that_the_evaluator_starts(judge: Judge) -> None:
    """A candidate that answers another process with objects is called there as here, and sees them again."""
    script = "several = program['make']()\nprint(several[0].solve(5) + program['first'](several=several))\n"
    offered: Functions = {
        "Solver": Solver,
        "make": lambda: [Solver(3)],
        "first": lambda several: several[0].solve(1),
    }
    assert judge(in_a_child(script), offered, wanted=["make", "first"], classes=["Solver"]).result["score"] == 18


@dataclass
class Tour:
    """What a program may answer: `order` says something else each time that it is looked at."""

    length: float
    looks: int = 0

    @property
    def order(self) -> list[int]:
        self.looks += 1
        return [self.looks]

    def longer(self) -> "Tour":
        return Longer(self.length + 1)


class Longer(Tour):
    """One that the judge has never heard of."""


FIELDS = ["Tour.length", "Tour.order"]


def test_fields_of_objects(judge: Judge) -> None:
    """What an object has is read like a value, also of a class that is made of a named one. It is what it was at the
    first look, until something is called: a candidate cannot show one thing to the check and another to the score.
    """
    evaluator = (
        BY_SPEC
        + """
def evaluate(program_path):
    tour = load(program_path).solve()
    assert (tour.order, tour.order) == ([1], [1])
    longer = tour.longer()
    assert tour.order == [2]
    return {"combined_score": tour.length + longer.length}
"""
    )
    offered: Functions = {"solve": lambda: Tour(2.0)}
    assert judge(evaluator, offered, wanted=["solve"], classes=["Tour"], fields=FIELDS).result["score"] == 5


def test_fields_in_a_process_that_the_evaluator_starts(judge: Judge) -> None:
    """As here."""
    offered: Functions = {"solve": lambda: Tour(2.0)}
    script = "tour = program['solve']()\nprint(tour.length + tour.order[0] + tour.order[0])\n"
    assert judge(in_a_child(script), offered, wanted=["solve"], classes=["Tour"], fields=FIELDS).result["score"] == 4


class Model:
    """What is called itself."""

    def __call__(self, x: float, *, shift: float = 0) -> float:
        return 2 * x + shift


def test_objects_and_functions_that_are_called_themselves(judge: Judge) -> None:
    """A program may answer with a model, or with a function that it made; other hidden members stay hidden."""
    evaluator = (
        BY_SPEC
        + """
def evaluate(program_path):
    model, double = load(program_path).make()
    return {"combined_score": model(3, shift=1) + double(4)}
"""
    )
    offered: Functions = {"make": lambda: (Model(), lambda x: 2 * x)}
    assert judge(evaluator, offered, wanted=["make"], classes=["Model", "function"]).result["score"] == 15
    hidden = evaluator.replace("double(4)", "double.__globals__")
    with pytest.raises(AttributeError, match="__globals__ of a candidate's object cannot be reached"):
        judge(hidden, offered, wanted=["make"], classes=["Model", "function"])


def test_a_field_that_a_candidate_does_not_have(judge: Judge) -> None:
    """It is the candidate's failure, as in one process."""
    evaluator = BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).solve().missing}\n"
    offered: Functions = {"solve": lambda: Tour(2.0)}
    result = judge(evaluator, offered, wanted=["solve"], classes=["Tour"], fields=["Tour.missing"]).result
    assert result["valid"] is False
    assert "AttributeError: 'Tour' object has no attribute 'missing'" in result["notes"]


SIGNS = "from enum import Enum\nclass Sign(Enum):\n    GO = 1\n    STOP = 2\n"
WITH_SIGNS = {
    "in the evaluator": BY_SPEC
    + """
from signs import Sign
def evaluate(program_path):
    program = load(program_path)
    assert program.turn(Sign.GO) is Sign.STOP
    return {"combined_score": 1.0}
""",
    "in a process that it starts": in_a_child(
        "from signs import Sign\nprint(float(program['turn'](Sign.GO) is Sign.STOP))\n"
    ),
}


@pytest.mark.parametrize("where", WITH_SIGNS)
def test_members_of_an_enumeration(judge: Judge, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside evaluator and program has it, and each side has its own members."""
    (tmp_path / "signs.py").write_text(SIGNS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delitem(sys.modules, "signs", raising=False)
    signs = importlib.import_module("signs")
    offered: Functions = {"turn": lambda sign: signs.Sign(3 - sign.value)}
    assert judge(WITH_SIGNS[where], offered, wanted=["turn"], enums=["signs.Sign"]).result["score"] == 1.0


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


def test_an_answer_that_cannot_be_sent_on(judge: Judge) -> None:
    """An answer that another process cannot be given is a failure of the candidate, not of the evaluator."""
    script = "try:\n    program['solve']()\nexcept Exception as error:\n    assert 'sent on' in str(error)\nprint(1)\n"
    result = judge(in_a_child(script), {"solve": lambda: nested(MAX_DEPTH - 1)}).result
    assert result["valid"] is False
    assert "every call failed, the first with: solve: the answer cannot be sent on" in result["notes"]


CAUGHT = (
    BY_SPEC
    + """
def evaluate(program_path):
    program = load(program_path)
    try:
        program.fail()
    except ZeroDivisionError:
        return {"combined_score": program.solve(3)}
"""
)
FAILING: Functions = {"solve": lambda x: x, "fail": lambda: 1 / 0}


def test_an_error_has_its_kind(judge: Judge) -> None:
    """An error of the candidate's reaches the evaluator as the kind that it was."""
    assert judge(CAUGHT, FAILING, BOTH).result["score"] == 3


def test_an_error_that_the_evaluator_lets_pass(judge: Judge) -> None:
    """Where nobody catches the candidate's error, the candidate has no score, and the judge is not to blame."""
    result = judge(CAUGHT.replace("ZeroDivisionError", "KeyError"), FAILING, BOTH).result
    assert result["valid"] is False
    assert "division by zero" in result["notes"]


def test_threads_take_turns(judge: Judge) -> None:
    """Calls from several threads are answered each with its own answer."""
    evaluator = (
        BY_SPEC
        + """
from concurrent.futures import ThreadPoolExecutor
def evaluate(program_path):
    program = load(program_path)
    with ThreadPoolExecutor(4) as pool:
        right = list(pool.map(program.solve, range(40))) == [2 * x for x in range(40)]
    return {"combined_score": float(right)}
"""
    )
    assert judge(evaluator).result["score"] == 1


def test_numbers_are_metrics(judge: Judge) -> None:
    """Numbers become metrics, artifacts and texts become notes; what is no number, or not finite, is no metric."""
    evaluator = (
        BY_SPEC
        + """
from openevolve.evaluation_result import EvaluationResult
async def evaluate(program_path):
    metrics = {"combined_score": load(program_path).solve(1), "score": 7, "ok": True, "far": float("inf"), "why": "so"}
    return EvaluationResult(metrics=metrics, artifacts={"hint": "x" * 5000})
"""
    )
    result = judge(evaluator).result
    assert (result["score"], result["metrics"]) == (2, {"combined_score": 2, "evaluator_score": 7})
    assert "why: so" in result["notes"]
    assert "hint: xxx" in result["notes"]
    assert len(result["notes"]) < 600


STAGED = (
    BY_SPEC
    + """
def evaluate(program_path):
    raise AssertionError("the stages are run")
def evaluate_stage1(program_path):
    return {"runs": 1.0, "combined_score": load(program_path).solve(0.2)}
def evaluate_stage2(program_path):
    return {"combined_score": load(program_path).solve(3)}
"""
)


@pytest.mark.parametrize(("threshold", "score"), [(0.3, 6), (0.5, 0.4)])
def test_stages_stop_below_their_threshold(judge: Judge, threshold: float, score: float) -> None:
    """A stage below its threshold is the last one, and its score counts."""
    result = judge(STAGED, thresholds=[threshold]).result
    assert result["score"] == score
    assert ("stopped at stage 1 of 2: combined_score 0.4 is below 0.5" in result["notes"]) == (score == 0.4)


def test_a_stage_without_the_metric(judge: Judge) -> None:
    """A stage that stops without the metric gives no score: the mean of its numbers decides only whether to go on."""
    staged = STAGED.replace('"runs": 1.0, "combined_score": ', '"runs": 0.0, "speed": ')
    result = judge(staged, thresholds=[0.5]).result
    assert result["valid"] is False
    assert "the mean of runs, speed 0.2 is below 0.5" in result["notes"]


LATER = {
    "stage 2 of 2 gave the error: no luck": '{"error": "no luck"}',
    "stage 2 of 2 gave the error: nearly": '{"combined_score": 5.0, "error": "nearly"}',
    "stage 2 of 2, the last, gave no combined_score (it gave: runs)": '{"runs": 1.0}',
    "stage 2 of 2, the last, gave no combined_score (it gave: none)": "{}",
}


@pytest.mark.parametrize("why", LATER)
def test_a_stage_that_fails_leaves_no_score_of_an_earlier_one(judge: Judge, why: str) -> None:
    """A candidate that passes the cheap stage and fails in the last has no score, though the first one gave some."""
    result = judge(
        STAGED.replace('{"combined_score": load(program_path).solve(3)}', LATER[why]), thresholds=[0.3]
    ).result
    assert result["valid"] is False
    assert why in result["notes"]


def test_a_stop_at_a_stage_without_the_metric(judge: Judge) -> None:
    """A stage that is the last one, below its threshold, must have given the metric itself, too."""
    staged = STAGED.replace('{"combined_score": load(program_path).solve(3)}', "{}")
    result = judge(staged + "evaluate_stage3 = evaluate_stage1\n", thresholds=[0.3, 0.5]).result
    assert result["valid"] is False
    assert "stage 2 of 3, the last, gave no combined_score" in result["notes"]


def test_stages_of_a_broken_evaluator(judge: Judge) -> None:
    """An error of a stage that called nobody is the evaluator's own."""
    staged = STAGED.replace("    return {", "    return {'error': 'no disk'}\n    return {")
    with pytest.raises(Exception, match=r"neither called nor started the program .*no disk"):
        judge(staged, thresholds=[0.3])


BROKEN = {
    "neither called nor started the program (No module named 'missing_helper')": EVALUATE.replace(
        "    try:\n", "    try:\n        import missing_helper\n"
    ),
    "neither called nor started the program": "def evaluate(program_path):\n    return {'combined_score': 1.0}\n",
    "cannot be sent to the candidate": EVALUATE.replace("solve(20)", "solve(object())"),
    "cannot be sent to the candidate: solve: function": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).solve(lambda x: x)}\n"
    ),
    "returned int, not a dict": BY_SPEC + "def evaluate(program_path):\n    return load(program_path).solve(1)\n",
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_evaluator_is_no_score(judge: Judge, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An evaluator that swallowed its own fault is a judge that broke, whatever score it gave; one line says so."""
    with pytest.raises(Exception, match=r"evaluator|returned") as broke:
        judge(BROKEN[why])
    assert type(broke.value).__name__ == "EvaluatorBroke"
    assert why in str(broke.value)
    sys.excepthook(type(broke.value), broke.value, broke.value.__traceback__)
    assert capsys.readouterr().err.count("\n") == 1


def test_a_broken_evaluator_of_a_program_that_makes_functions(judge: Judge) -> None:
    """That a program has no function of the name `function` is no fault of its."""
    with pytest.raises(Exception, match="neither called nor started the program"):
        judge("def evaluate(program_path):\n    return {'combined_score': 1.0}\n", classes=["function"])


def no_luck(x: float) -> None:
    del x
    raise ValueError("no luck")


NO_SOLUTION: dict[str, tuple[str, Functions]] = {
    "the program has no function solve; it has: other": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': float(hasattr(load(path), 'solve'))}\n",
        {"other": abs},
    ),
    "every call failed, the first with: solve: ValueError: no luck": (EVALUATE, {"solve": no_luck}),
    "the evaluator gave no finite combined_score": (EVALUATE, {"solve": lambda _: float("inf")}),
    "the evaluator gave no finite combined_score (it gave: combined_score)": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).solve(1)}\n",
        {"solve": lambda _: -10**400},
    ),
    "the evaluator gave 0 with the error: can only concatenate": (EVALUATE, {"solve": lambda _: "text"}),
    "the evaluator gave no combined_score (it gave: x)": (EVALUATE.replace("combined_score", "x"), {"solve": abs}),
}  # fmt: skip


@pytest.mark.parametrize("why", NO_SOLUTION)
def test_a_failing_candidate_has_no_score(judge: Judge, why: str) -> None:
    """Where the program failed, the result says so: it is no solution, not a score of zero."""
    result = judge(*NO_SOLUTION[why]).result
    assert result["valid"] is False
    assert why in result["notes"]


def test_an_integer_that_is_too_long_to_be_told(judge: Judge) -> None:
    """A candidate's huge integer among other metrics and artifacts breaks nothing: it is no metric."""
    evaluator = (
        BY_SPEC
        + """
from openevolve.evaluation_result import EvaluationResult
def evaluate(program_path):
    huge = load(program_path).solve(1) ** 20
    return EvaluationResult(metrics={"combined_score": 1.0, "huge": huge}, artifacts={"huge": huge})
"""
    )
    result = judge(evaluator, {"solve": lambda _: 10**400}).result
    assert (result["score"], result["metrics"]) == (1, {"combined_score": 1})
    assert "huge: an integer, or with one, that is too long to be told" in result["notes"]


def test_a_task_of_evo_that_is_not_finite(judge: Judge) -> None:
    """A task without a number is no solution: it is the candidate that gave it."""
    end = "print(json.dumps({'score': 1.0, 'tasks': tasks}))\n"
    result = judge(EVO + end, {"solve": lambda _: float("inf")}, **TOLD).result
    assert result["valid"] is False
    assert "no finite number for the task 1" in result["notes"]


def test_a_candidate_adds_no_names(judge: Judge) -> None:
    """A program that is executed among the evaluator's own names brings only what was asked for: a candidate cannot
    replace the evaluator's functions by offering some of the same name.
    """
    evaluator = """
def checked(value):
    return float(value == 42)
def evaluate(program_path):
    exec(open(program_path).read(), globals())
    return {"combined_score": checked(solve(20))}
"""
    assert judge(evaluator, {"solve": lambda x: x, "checked": lambda _: 1e9}).result["score"] == 0


def test_a_call_after_the_end(judge: Judge) -> None:
    """A thread that an evaluator left behind finds the door closed."""
    kept: list[Any] = []
    sys.modules["evaluation_module_kept"] = kept  # type: ignore[assignment]  # how an evaluator hands it over
    judge(EVALUATE.replace("load(program_path)", "keep(load(program_path))") + KEEP)
    with pytest.raises(Exception, match="after the evaluator had returned"):
        kept[0].solve(2)


def test_values_after_the_end(judge: Judge) -> None:
    """A process that an evaluator left behind, and which loads the program only then, is told so: a question between
    the evaluator's end and the judge's answer would be taken for that answer.
    """
    del judge  # for the modules that it brings
    asked: list[str] = []

    def value(name: str) -> int:
        asked.append(name)
        return 7

    candidate = SimpleNamespace(functions=("solve",), value=value)
    door = importlib.import_module("blastdoor_stub").Door(candidate, ["solve"], ["LIMIT"])
    assert door.answer([]) == ["", [["solve"], {"LIMIT": 7}]]
    door.end()
    assert door.answer([]) == ["EvaluatorBroke", "LIMIT was called after the evaluator had returned"]
    assert asked == ["=LIMIT"]


SHINKA = """
from shinka.core import run_shinka_eval

def checked(result):
    return (result < 100, f"{result} is too large")

def main(program_path, results_dir):
    run_shinka_eval(
        program_path=program_path,
        results_dir=results_dir,
        experiment_fn_name="solve",
        num_runs=3,
        get_experiment_kwargs=lambda number: {"x": number},
        validate_fn=checked,
        aggregate_metrics_fn=lambda results: {
            "combined_score": float(sum(results)), "public": {"runs": len(results)}, "private": {"gold": 7}
        },
        run_workers=4,
    )
"""


def test_an_evaluator_of_shinka(judge: Judge) -> None:
    """Its runs are calls with keywords; public numbers are told, private ones are not."""
    result = judge(SHINKA, system="shinka").result
    metrics = result["metrics"]
    assert (result["score"], metrics["runs"], metrics["num_invalid_runs"]) == (6, 3, 0)
    assert "gold" not in json.dumps(result)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: 99 + x, "100 is too large"),
        (lambda x: 1 / x if x else 1 / 0, "division by zero"),
        (no_luck, "no luck"),
    ],
)
def test_an_answer_that_shinka_calls_wrong(judge: Judge, function: Callable[..., Any], why: str) -> None:
    """What the evaluator calls incorrect is no solution, whatever its score."""
    result = judge(SHINKA, {"solve": function}, system="shinka").result
    assert result["valid"] is False
    assert why in result["notes"]


def test_an_evaluator_of_shinka_that_leaves_nothing(judge: Judge) -> None:
    """Without its two files the judge broke."""
    with pytest.raises(Exception, match=r"left no metrics\.json"):
        judge("def main(program_path, results_dir):\n    pass\n", system="shinka")


EVO = (
    BY_SPEC
    + """
import json, os, sys
solve = load(sys.argv[2]).solve
tasks = {str(x): solve(x) for x in (1, 2)}
result = json.dumps({"score": sum(tasks.values()), "tasks": tasks})
"""
)
LEAVES = {
    "a file": "print('log')\nopen(os.environ['EVO_RESULT_PATH'], 'x').write(result)\nsys.exit(0)\n",
    "stdout": "print(result)\n",
}
TOLD = {"system": "evo", "metric": "score", "arguments": ["--target", "{target}"]}


@pytest.mark.parametrize("where", LEAVES)
def test_a_benchmark_of_evo(judge: Judge, where: str) -> None:
    """It finds the target on its command line, and its result counts wherever it leaves it, with its tasks."""
    result = judge(EVO + LEAVES[where], **TOLD).result
    assert (result["score"], result["tasks"]) == (6, {"1": 2, "2": 4})


@pytest.mark.parametrize(
    ("end", "why"),
    [("sys.exit(3)\n", "ended with 3"), ("print('no result')\n", "left no result"), ("print('[1]')\n", "is no table")],
)
def test_a_benchmark_of_evo_that_breaks(judge: Judge, end: str, why: str) -> None:
    """Another exit code than 0, and no result, are the judge's own faults."""
    with pytest.raises(Exception, match=why):
        judge(EVO + end, **TOLD)


@pytest.mark.parametrize(
    ("score", "goal", "valid"),
    [(0.0, "lower", False), (5.0, "lower", False), (0.0, "higher", False), (5.0, "higher", True)],
)
def test_a_benchmark_of_evo_that_tells_an_error(judge: Judge, score: float, goal: str, valid: bool) -> None:
    """An error beside the score is no solution where the score is one of failure: 0 or less, or any where lower is
    better, since 0 would win there.
    """
    end = f"print(json.dumps({{'score': {score}, 'error': 'no luck'}}))\n"
    result = judge(EVO + end, **TOLD, goal=goal).result
    assert result["valid"] is valid
    assert "no luck" in result["notes"]


@pytest.mark.parametrize("error", ["ValueError('no luck')", "['no luck']"])
def test_an_error_that_is_no_text(judge: Judge, error: str) -> None:
    """An evaluator may hand the error on as it is."""
    evaluator = (
        BY_SPEC + f"def evaluate(path):\n    load(path).solve(1)\n    return {{'combined_score': 0, 'error': {error}}}"
    )
    result = judge(evaluator).result
    assert result["valid"] is False
    assert "no luck" in result["notes"]


ALARM = (
    BY_SPEC
    + """
import signal
def late(number, frame):
    raise TimeoutError
def evaluate(program_path):
    program = load(program_path)
    before = signal.signal(signal.SIGVTALRM, late)
    try:
        program.slow()
    except TimeoutError:
        sys.modules["evaluation_module_kept"].set()
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return {"combined_score": program.solve(4)}
import sys
"""
)


def test_an_alarm_in_the_middle_of_a_call(judge: Judge) -> None:
    """An evaluator that gives up on a call by an alarm gets the answer of its next call, not the late one."""
    caught = threading.Event()
    sys.modules["evaluation_module_kept"] = caught  # type: ignore[assignment]  # how the evaluator tells

    def slow() -> int:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGVTALRM)
        caught.wait(300)
        return -1

    result = judge(ALARM, {"slow": slow, "solve": lambda x: x}, ("slow", "solve")).result
    assert result["score"] == 4


CONSTANTS = (
    BY_SPEC
    + """
import subprocess, sys
CHILD = "import runpy, sys; print(runpy.run_path(sys.argv[1])['LIMIT'])"

def evaluate(program_path):
    program = load(program_path)
    told = subprocess.run([sys.executable, "-c", CHILD, program_path], capture_output=True, check=True, timeout=300)
    others = [hasattr(program, name) for name in ("MISSING", "_hidden", "function", "odd")]
    return {"combined_score": program.solve(program.LIMIT) + float(told.stdout), "others": float(sum(others))}
"""
)


def test_constants_of_a_program(judge: Judge) -> None:
    """Plain values of the program are there, for other processes too; what it has not, hides or cannot send is not."""
    module = importlib.import_module("blastdoor_candidate")._Module
    contents = {"LIMIT": 20, "_hidden": 1, "function": len, "odd": object()}
    functions = module({"solve": lambda x: 2 * x}, contents)
    result = judge(CONSTANTS, functions, constants=["LIMIT", "MISSING", "_hidden", "function", "odd"]).result
    assert (result["score"], result["metrics"]["others"]) == (60, 0)
