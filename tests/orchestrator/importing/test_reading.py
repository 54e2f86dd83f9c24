"""What reading tells of how an evaluator uses a program."""

from pathlib import Path

import pytest

from orchestrator.importing import ImportRequest
from orchestrator.importing.openevolve import read
from tests.orchestrator.importing.openevolve_tasks import write

HANDED = {
    "load(path).solve(sphere)": "evaluator.py:4 hands sphere to solve, and no function can be sent",
    "load(path)['solve'](1, of=lambda x: x)": "evaluator.py:4 hands a lambda to solve, and no function can be sent",
    "load(path).solve(sphere(1)) + timed(sphere, load(path).solve)": "",
    "load(path).solve(1, key=path)": "",
}


@pytest.mark.parametrize("call", HANDED)
def test_a_function_that_the_evaluator_hands_over(tmp_path: Path, call: str) -> None:
    """What would end the first run is told when the task is imported."""
    evaluator = f"def sphere(x):\n    return x\ndef evaluate(path):\n    return {{'combined_score': {call}}}\n"
    program = "def solve(*x, **of):\n    return 1\n"
    source = write(tmp_path, evaluator__py=evaluator, initial_program__py=program, config__yaml=None)
    told = [it for it in read(ImportRequest(source, "small")).findings if "hands" in it]
    assert bool(told) is bool(HANDED[call])
    assert all(it.startswith(HANDED[call]) for it in told)


NOT_REACHED = {
    "solve of initial_program.py gives nothing back: what it changes in its arguments": (
        "def solve(x):\n    x.sort()\n    def inner():\n        return 1\n", "p.solve(x)"
    ),
    "initial_program.py:2 writes files: they stay in the candidate's chamber": (
        "def solve(x):\n    open('out.txt', mode='w').close()\n    return x\n", "p.solve(1)"
    ),
    "evaluator.py:4 sets LIMIT: where that is the program's": (
        "LIMIT: int = 3\ndef solve(x):\n    return x\n", "setattr(p, 'a', 1)\n    p.LIMIT = p.solve(1)"
    ),
    "evaluator.py:3 catches what is printed": (
        "def solve(x):\n    return x\n", "contextlib.redirect_stdout(None).__enter__(); p.solve(1)"
    ),
    "evaluator.py:3 asks for a signature": ("def solve(x):\n    return x\n", "inspect.signature(p.solve)"),
    "": (
        "class Solver:\n    def fit(self, x):\n        self.x = x\ndef solve(*x):\n    yield open('table').read()\n",
        "q.other = p.solve(1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", NOT_REACHED)
def test_what_does_not_reach_the_other_side(tmp_path: Path, line: str) -> None:
    """Habits that work in one process only are told, since nothing fails by them: the score is poor."""
    program, use = NOT_REACHED[line]
    evaluator = f"def evaluate(path):\n    p = load(path)\n    {use}\n    return {{'combined_score': 1}}\n"
    source = write(tmp_path, evaluator__py=evaluator, initial_program__py=program, config__yaml=None)
    told = read(ImportRequest(source, "small")).findings
    assert [it.startswith(line) for it in told] == ([True] if line else [])


NAMED = """
import typing
from collections import namedtuple

Point = namedtuple("Point", "x, y")
Size = typing.NamedTuple("Size", [("wide", int)])
made = namedtuple(*["Odd", "a"])
other = namedtuple("Mismatch", "a")


class Route(typing.NamedTuple):
    length: float
    stops: list = []


class Rich(typing.NamedTuple):
    cost: float

    def total(self):
        return self.cost


class Solver:
    async def solve(self, x):
        return Route(x, [])


async def search(x):
    return Solver()


find = search
"""


def test_named_tuples_and_async_functions(tmp_path: Path) -> None:
    """Fields of named tuples are told to the judge, and what is awaited; one whose methods are called is an object."""
    evaluator = (
        "async def evaluate(path):\n    p = load(path)\n    r = await (await p.search(1)).solve(2)\n"
        "    return {'combined_score': r.length + p.Rich(2).total() + await p.find(3)}\n"
    )
    source = write(tmp_path, evaluator__py=evaluator, initial_program__py=NAMED, config__yaml=None)
    driver = read(ImportRequest(source, "small")).files["judge/judge.py"].decode()
    for told in (
        "functions=['search', 'find'],",
        "coroutines=['search', 'find', 'Solver.solve'],",
        "tuples={'Point': ['x', 'y'], 'Size': ['wide'], 'Route': ['length', 'stops']},",
        "classes=['Rich', 'Solver'],",
    ):
        assert told in driver
    assert "constants=" not in driver
