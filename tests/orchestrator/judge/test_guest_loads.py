"""A program that is loaded several times is as fresh behind the door as it is without one."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.orchestrator.judge.evaluators import BY_SPEC, Channel, Judge

# A helper beside it, whose state is that of the Python; its own state is that of one load.
PROGRAM = """
import counting

counts = {"own": 0}

def solve():
    counts["own"] += 1
    counting.all += 1
    return counts["own"]

def everywhere():
    return counting.all

class Counter:
    def __init__(self):
        self.loaded = counts
    def seen(self):
        return self.loaded["own"]
"""
CHILD = "import runpy, sys; p = runpy.run_path(sys.argv[1]); print(10 * p['solve']() + p['everywhere']())"
START = "def start(path):\n    import subprocess, sys\n"
START += f"    told = subprocess.run([sys.executable, '-c', {CHILD!r}, path], stdout=subprocess.PIPE, check=True)\n"
START += "    return int(told.stdout)\n"
ALIVE = """
def where():
    return os.getpid()
def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
"""
FRESH = {
    "three loads": "100 * load(path).solve() + 10 * load(path).solve() + load(path).solve()",
    "one load": "sum(program.solve() for program in [load(path)] for _ in range(3))",
    "what others have": "sum(load(path).solve() for _ in range(3)) + 10 * load(path).everywhere()",
    "an earlier load": "sum(it.solve() for them in [[load(path), load(path)]] for it in them + them)",
    "an object of an earlier load": (
        "sum(p.solve() + load(path).solve() + it.seen() for p in [load(path)] for it in [p.Counter()])"
    ),
    "a python of its own": "1000 * load(path).solve() + start(path) + start(path)",
    "exec twice": "sum(n['solve']() for n in [{}, {}] if exec(open(path).read(), n) is None)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "program"
    place.mkdir()
    (place / "counting.py").write_text("all = 0\n")
    (place / "program.py").write_text(PROGRAM)
    return place


Loads = Callable[[str, Path], Channel]


@pytest.fixture
def through_the_door(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Runs an evaluator on the real program of a folder."""

    def run(evaluator: str, folder: Path) -> Channel:
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, "counting", raising=False)
        candidate = importlib.import_module("blastdoor_candidate")
        path = folder / "program.py"
        again = [sys.executable, "-m", "blastdoor_candidate", str(path)]
        names = ("solve", "everywhere", "where", "alive", "leave")
        return judge(evaluator, lambda: candidate.functions_of(path), names, classes=["Counter"], again=again)

    return run


@pytest.mark.parametrize("how", FRESH)
def test_loads_are_as_fresh_as_natively(through_the_door: Loads, folder: Path, how: str) -> None:
    """The same evaluator, in one process with the program and through the door, sees the same state."""
    evaluator = f"{BY_SPEC}{START}\ndef evaluate(path):\n    return {{'combined_score': {FRESH[how]}}}\n"
    (folder / "evaluator.py").write_text(evaluator)
    natively = "import evaluator, sys; print(evaluator.evaluate(sys.argv[1])['combined_score'])"
    told = subprocess.run(
        [sys.executable, "-c", natively, "program.py"], cwd=folder, capture_output=True, check=True, text=True
    )
    channel = through_the_door(evaluator, folder)
    assert channel.result["score"] == int(told.stdout), channel.result


def test_a_python_of_its_own_ends_with_the_process(through_the_door: Loads, folder: Path) -> None:
    """One that a process of the evaluator's had is there no longer than that process, as far as nobody needs it."""
    (folder / "program.py").write_text(PROGRAM + "\nimport os\n" + ALIVE)
    child = CHILD.replace("10 * p['solve']() + p['everywhere']()", "p['where']()")
    evaluator = f"""{BY_SPEC}{START.replace(CHILD, child)}
import time
def evaluate(path):
    gone = start(path)
    for _ in range(2000):
        if not load(path).alive(gone):
            return {{"combined_score": 1.0}}
        time.sleep(0.01)
    return {{"combined_score": 0.0}}
"""
    assert through_the_door(evaluator, folder).result["score"] == 1.0


def test_a_python_of_its_own_that_exits(through_the_door: Loads, folder: Path) -> None:
    """It takes nothing else with it: the call that it was in fails, and other loads go on."""
    (folder / "program.py").write_text(PROGRAM + "\nimport os\ndef leave():\n    os._exit(3)\n")
    child = "import runpy, sys; p = runpy.run_path(sys.argv[1])\ntry:\n    p['leave']()\n"
    child += "except RuntimeError as error:\n    print(int('has ended' in str(error)))"
    evaluator = f"{BY_SPEC}{START.replace(repr(CHILD), repr(child))}\ndef evaluate(path):\n    p = load(path)\n"
    evaluator += "    return {'combined_score': p.solve() + start(path) + p.solve()}\n"
    result = through_the_door(evaluator, folder).result
    assert result["score"] == 4
    assert "1 of 3 calls failed" in result["notes"]


def test_a_load_that_fails(through_the_door: Loads, folder: Path) -> None:
    """It is the candidate's error, and the evaluator gets it where it loads; what was loaded before is still there."""
    fails = "\ncounting.all += 10\nif counting.all == 20:\n    raise ValueError('once is enough')\n"
    (folder / "program.py").write_text(PROGRAM + fails)
    evaluator = f"""{BY_SPEC}
def evaluate(path):
    program = load(path)
    try:
        load(path)
    except ValueError as error:
        assert "once is enough" in str(error)
        return {{"combined_score": program.solve() + program.everywhere()}}
"""
    result = through_the_door(evaluator, folder).result
    assert result["score"] == 22, result
    let_pass = through_the_door(evaluator.replace("except ValueError", "except KeyError"), folder).result
    assert (let_pass["valid"], "once is enough" in let_pass["notes"]) == (False, True)
