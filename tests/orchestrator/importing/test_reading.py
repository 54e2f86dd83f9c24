"""What reading tells of how an evaluator uses a program."""

import ast
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
    call = next(it for it in ast.walk(ast.parse(driver)) if isinstance(it, ast.Call))
    given = {it.arg: ast.literal_eval(it.value) for it in call.keywords}
    assert given["functions"] == ["search", "find"]
    assert given["coroutines"] == ["search", "find", "Solver.solve"]
    assert given["tuples"] == {"Point": ["x", "y"], "Size": ["wide"], "Route": ["length", "stops"]}
    assert given["classes"] == ["Rich", "Solver"]
    assert "constants" not in given
