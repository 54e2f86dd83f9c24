"""A program behind the door, as an evaluator finds it: its functions, objects, values and errors."""

import asyncio
import importlib
import signal
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from orchestrator.judge.guest.blastdoor_values import MAX_DEPTH
from tests.orchestrator.judge.evaluators import BY_SPEC, EVALUATE, Channel, Functions, Judge, in_a_child

KEEP = """
def keep(program):
    import sys
    sys.modules["evaluation_module_kept"].append(program)
    return program
"""
BOTH = ("solve", "fail")


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
    child = "try:\n    program['fail']()\nexcept Exception as error:\n    assert 'no luck' in str(error), error\n"

    def fail() -> None:
        raise ValueError("no luck")

    result = judge(
        in_a_child(child + "print(program['solve'](4))"), {"solve": lambda x: 2 * x, "fail": fail}, BOTH
    ).result
    assert result["score"] == 8
    assert "1 of 2 calls failed" in result["notes"]


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


class Route(NamedTuple):
    """As a program has it; the judge has a class of its own with this name and these fields."""

    length: float
    stops: list[int]


ROUTES = (
    BY_SPEC
    + """
import pickle, subprocess, sys
CHILD = "import pickle, runpy, sys; pickle.dump(runpy.run_path(sys.argv[1])['solve'](2), sys.stdout.buffer)"

def evaluate(program_path):
    program = load(program_path)
    route = program.solve(1)
    length, stops = route
    assert (route.length, len(route), route[0], isinstance(route, tuple)) == (length, 2, length, True)
    assert isinstance(route, program.Route) and program.measure(program.Route(3.0, stops)) == 3.0
    told = subprocess.run([sys.executable, "-c", CHILD, program_path], capture_output=True, check=True, timeout=300)
    other = pickle.loads(told.stdout)
    assert program.measure(other) == other.length
    return {"combined_score": length + other.length + sum({program.solve(1)._replace(stops=()): 10.0}.values())}
"""
)


def test_named_tuples(judge: Judge) -> None:
    """They are tuples with names on either side, in processes that the evaluator starts and between them too."""
    functions: Functions = {"solve": lambda x: Route(0.5 * x, [1, 2]), "measure": lambda route: route.length}
    module = importlib.import_module("blastdoor_candidate").Offered
    offered = module(functions, {**functions, "Route": Route})
    result = judge(ROUTES, offered, ("solve", "measure"), tuples={"Route": ["length", "stops"]}).result
    assert result.get("score") == 11.5, result


@pytest.mark.parametrize("length", [1, 3])
def test_a_named_tuple_of_another_length(judge: Judge, length: int) -> None:
    """What a candidate made of the class is no longer what the evaluator knows."""
    make: Any = namedtuple  # what is checked wants to see the names
    other = make("Route", [f"field_{at}" for at in range(length)])
    body = "def evaluate(path):\n    return {'combined_score': load(path).solve(1).length}\n"
    functions: Functions = {"solve": lambda _: other(*range(length))}
    result = judge(BY_SPEC + body, functions, tuples={"Route": ["length", "stops"]}).result
    assert result["valid"] is False
    assert "a named tuple of a class that was not named, or of another length" in result["notes"]


def test_what_is_given_one_by_one(judge: Judge) -> None:
    """What an evaluator hands over need not be a list. A generator is an iterator for the evaluator, whatever it does
    with it; an error in it is the candidate's.
    """
    body = (
        "def evaluate(path):\n    p, rows = load(path), {1: 2, 3: 4}\n    return {'combined_score': p.solve(range(3))"
    )
    body += " + p.solve(it for it in (3, 4)) + p.solve(rows.values()) + p.solve(zip(rows, rows))}\n"
    functions: Functions = {"solve": lambda it: sum(sum(one) if type(one) is tuple else one for one in it)}
    assert judge(BY_SPEC + body, functions).result["score"] == 3 + 7 + 6 + 8
    body = "def evaluate(path):\n    it = load(path).solve(4)\n    return {'combined_score': next(it) + sum(it)}\n"
    assert judge(BY_SPEC + body, {"solve": lambda x: (it for it in range(x))}).result["score"] == 6
    failed = judge(BY_SPEC + body, {"solve": lambda x: (1 / it for it in range(x))}).result
    assert (failed["valid"], failed["notes"]) == (False, "solve: ZeroDivisionError: division by zero")


AWAITS = {
    "by itself": "asyncio.run(program.solve(3))",
    "several": "sum(asyncio.run(several(program)))",
    "late": "asyncio.run(late(program)) + asyncio.run(program.solve(3))",
    "a method": "asyncio.run(program.make().solve(3))",
    "in a child": "float(subprocess.run([sys.executable, '-c', CHILD, path], capture_output=True, check=True).stdout)",
}
AWAITING = (
    BY_SPEC
    + """
import asyncio, subprocess, sys
CHILD = "import asyncio, runpy, sys; print(asyncio.run(runpy.run_path(sys.argv[1])['solve'](3)))"

async def several(program):
    return await asyncio.gather(program.solve(1), program.solve(2))

async def late(program):
    try:
        await asyncio.wait_for(program.wait(), timeout=0.05)
    except asyncio.TimeoutError:
        return 0

def evaluate(path):
    program = load(path)
    return {"combined_score": FOUND}
"""
)


@pytest.mark.parametrize("how", AWAITS)
def test_functions_that_are_awaited(judge: Judge, how: str) -> None:
    """An async function of the program is one for the evaluator. After one that it no longer waits for, the next call
    has its own answer.
    """

    class Solver:
        async def solve(self, x: float) -> float:
            await asyncio.sleep(0)
            return 2 * x

    async def wait() -> float:
        await asyncio.sleep(0.5)
        return -1

    functions: Functions = {"solve": Solver().solve, "wait": wait, "make": Solver}
    known = {"coroutines": ["solve", "wait", "Solver.solve"], "classes": ["Solver"]}
    Solver.__qualname__ = "Solver"
    result = judge(AWAITING.replace("FOUND", AWAITS[how]), functions, ("solve", "wait", "make"), **known).result
    assert result.get("score") == 6, result


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


def test_an_error_has_its_kind(judge: Judge) -> None:
    """An error of the candidate's reaches the evaluator as the kind that it was. Where nobody catches it, the candidate
    has no score, and the judge is not to blame.
    """
    failing: Functions = {"solve": lambda x: x, "fail": lambda: 1 / 0}
    assert judge(CAUGHT, failing, BOTH).result["score"] == 3
    result = judge(CAUGHT.replace("ZeroDivisionError", "KeyError"), failing, BOTH).result
    assert (result["valid"], "division by zero" in result["notes"]) == (False, True)


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
    module = importlib.import_module("blastdoor_door")
    door = module.Door(candidate, ["solve"], module.Seen(["LIMIT"]))
    assert door.answer(0) == ["", [(0, 0), ["solve"], {"LIMIT": 7}]]
    door.end()
    assert door.answer(0) == ["EvaluatorBroke", "the program was called after the evaluator had returned"]
    assert asked == ["=LIMIT"]


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
    module = importlib.import_module("blastdoor_candidate").Offered
    contents = {"LIMIT": 20, "_hidden": 1, "function": len, "odd": object()}
    functions = module({"solve": lambda x: 2 * x}, contents)
    result = judge(CONSTANTS, functions, constants=["LIMIT", "MISSING", "_hidden", "function", "odd"]).result
    assert (result["score"], result["metrics"]["others"]) == (60, 0)


CLOCKED = (
    BY_SPEC
    + """
import time
import blastdoor_clock
def evaluate(program_path):
    program = load(program_path)
    began, began_ns = time.perf_counter(), time.monotonic_ns()
    program.solve(1)
    stood = blastdoor_clock._stood[0]
    assert time.perf_counter() > began and time.monotonic_ns() > began_ns
    told = time.perf_counter.__wrapped__() - time.perf_counter()
    return {"combined_score": stood, "told": told}
"""
)


@pytest.mark.parametrize("large", [False, True])
def test_clocks_stand_still_on_the_way(judge: Judge, large: bool) -> None:
    """All that a call takes beside the candidate's own time is not on the evaluator's clocks, and no more than that."""
    evaluator = CLOCKED.replace("solve(1)", "solve([0.5] * 10_000)") if large else CLOCKED
    assert judge(evaluator, {"solve": lambda _: time.sleep(0.05)}).result["score"] >= 0.05 - 0.002
    assert not hasattr(time.perf_counter, "__wrapped__")


def test_a_candidate_cannot_stop_the_clocks(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the orchestrator says that the candidate took is on them, whatever the candidate does meanwhile."""
    monkeypatch.setattr(Channel, "elapsed_s", 3600.0)
    assert judge(CLOCKED, {"solve": lambda _: time.sleep(0.05)}).result["score"] == 0


def test_unpacking_is_not_taken_off(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the way of so many bytes is rehearsed. A candidate that does not unpack what it need not would else have so
    much of its work taken off as the judge takes to unpack it.
    """
    rehearsed: list[bytes] = []
    sent = Channel.send

    def send(channel: Channel, nonce: bytes, *parts: bytes) -> None:
        if parts[0] == b"P":
            rehearsed.append(b"".join(parts)[6:])
        sent(channel, nonce, *parts)

    monkeypatch.setattr(Channel, "send", send)
    judge(CLOCKED.replace("solve(1)", "solve(list(range(1_000)))"), {"solve": len})
    [asked] = {bytes(it) for it in rehearsed}
    _, [data], *_ = importlib.import_module("blastdoor_kinds").decode_exact(asked)
    assert type(data) is bytes
    assert len(data) > 9_000
