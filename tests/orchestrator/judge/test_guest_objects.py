"""Objects and classes of a program behind the door, as an evaluator finds them."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.orchestrator.judge.evaluators import BY_SPEC, Functions, Judge, Solver, in_a_child


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


def test_objects_in_a_process_that_the_evaluator_starts(judge: Judge) -> None:
    """A candidate that answers another process with objects is called there as here, and sees them again."""
    script = "several = program['make']()\nprint(several[0].solve(5) + program['first'](several=several))\n"
    offered: Functions = {"Solver": Solver, "make": lambda: [Solver(3)], "first": lambda several: several[0].solve(1)}
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
    known: dict[str, Any] = {"wanted": ["solve"], "classes": ["Tour"], "fields": [*FIELDS, "Tour.missing"]}
    offered: Functions = {"solve": lambda: Tour(2.0)}
    assert judge(evaluator, offered, **known).result["score"] == 5
    script = "tour = program['solve']()\nprint(tour.length + tour.order[0] + tour.order[0])\n"
    assert judge(in_a_child(script), offered, **known).result["score"] == 4
    result = judge(evaluator.replace("tour.length", "tour.missing"), offered, **known).result
    assert result["valid"] is False
    assert "AttributeError: 'Tour' object has no attribute 'missing'" in result["notes"]


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
    result = judge(hidden, offered, wanted=["make"], classes=["Model", "function"]).result
    assert result["valid"] is False
    assert "__globals__ of a candidate's object cannot be reached" in result["notes"]


class Shape:
    """With a factory of its own, as classes have them."""

    def __init__(self, side: float) -> None:
        self.side = side

    @classmethod
    def of(cls, area: float, *, scale: float = 1.0) -> "Shape":
        return cls(scale * area**0.5)

    @staticmethod
    def unit() -> float:
        return 1.0

    def area(self) -> float:
        return self.side**2

    @staticmethod
    def _hidden() -> float:
        return 1.0


SHAPED = (
    BY_SPEC
    + """
import inspect, runpy, subprocess, sys
CHILD = "import evaluator, sys; print(evaluator.areas(sys.argv[1]))"

def areas(path):
    Shape = runpy.run_path(path)["Shape"]
    shape = Shape.of(4.0, scale=2.0)
    assert inspect.isclass(Shape) and isinstance(shape, Shape) and isinstance(Shape(1), Shape)
    assert not isinstance(shape.area(), Shape)
    return shape.area() + Shape.area(shape) + Shape.unit()

def evaluate(path):
    there = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, check=True, cwd=sys.path[0])
    return {"combined_score": areas(path) + float(there.stdout)}
"""
)


def test_a_class_of_the_program(judge: Judge) -> None:
    """It is a class for the evaluator, in other processes too: its own functions are called, and objects are of it."""
    result = judge(SHAPED, {"Shape": Shape}, (), classes=["Shape"]).result
    assert result.get("score") == 66, result


def test_a_class_that_another_is_made_of(judge: Judge) -> None:
    """An object is of every class that the import saw its own to be made of, and of no other."""
    body = "def evaluate(path):\n    p = load(path)\n    longer, tour = p.Longer(1.0), p.Tour(2.0)\n"
    body += (
        "    found = isinstance(longer, p.Longer) + isinstance(longer, p.Tour) * 2 + isinstance(tour, p.Longer) * 4\n"
    )
    body += "    return {'combined_score': found}\n"
    known = {"classes": ["Tour", "Longer"], "bases": {"Longer": ["Tour"]}}
    assert judge(BY_SPEC + body, {"Tour": Tour, "Longer": Longer}, (), **known).result["score"] == 3


@pytest.mark.parametrize(("name", "why"), [("_hidden", "class cannot be reached"), ("none", "no attribute 'none'")])
def test_what_a_class_does_not_have(judge: Judge, name: str, why: str) -> None:
    """Nor what it keeps to itself."""
    body = f"def evaluate(path):\n    program = load(path)\n    program.Shape(1)\n    program.Shape.{name}()\n"
    result = judge(BY_SPEC + body, {"Shape": Shape}, (), classes=["Shape"]).result
    assert result["valid"] is False
    assert why in result["notes"]


def test_a_class_that_an_evaluator_derives_from(judge: Judge) -> None:
    """What would run beside the answers is refused in one line."""
    body = "def evaluate(path):\n    class Own(load(path).Shape):\n        pass\n"
    with pytest.raises(Exception, match=r"raised TypeError: Shape is the candidate's: no class can be derived from it"):
        judge(BY_SPEC + body, {"Shape": Shape}, (), classes=["Shape"])


POOLED = (
    BY_SPEC
    + """
import sys
from multiprocessing import Pool

def solved(solver):
    return solver.solve(2)

def evaluate(path):
    program = load(path)
    sys.modules[program.__name__] = program
    with Pool(2) as pool:
        [solver] = pool.map(program.make, [0.5])
        there = sum(pool.map(program.solve, [1, 2])) + sum(pool.map(solved, [solver]))
    return {"combined_score": there + solver.solve(2)}
"""
)


def test_a_pool_of_processes(judge: Judge) -> None:
    """Functions and objects of the program are handed to other processes of the evaluator's, and back."""
    functions: Functions = {"solve": lambda x: 2 * x, "make": Solver}
    result = judge(POOLED, functions, ("solve", "make"), classes=["Solver"]).result
    assert result.get("score") == 6 + 1 + 1, result
