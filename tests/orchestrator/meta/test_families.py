"""The families on which the meta loop is measured: what runs in this process is bounded, and all have a way to go."""

import asyncio
import math

import pytest

from benchmarks.families import programs
from benchmarks.families.running import Broken, Running
from benchmarks.families.searching import DiceWorld, Side, cost_to_target
from benchmarks.families.simulated import Dice

EVERY = (*programs.REAL, *programs.TUNING, *programs.PACKING, *programs.EXPRESSION)


@pytest.mark.parametrize("program", EVERY, ids=lambda it: it.name)
def test_a_program_has_a_score_and_a_way_to_go(program: programs.Program) -> None:
    """It runs as it is, and is not where it shall get to."""
    score = program.score(program.source)
    assert score is not None
    assert score < program.target


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n        pass",
        "return f()",
        "return [0] * 10 ** 12",
        "return 9 ** 9 ** 9",
        "x = 9\n    for _ in range(60):\n        x = x * x\n    return x",
        "return [0 for _ in range(10 ** 7)]",
        "return open('x')",
        "return __import__('os')",
        "import os",
    ],
)
def test_no_change_runs_away(body: str) -> None:
    """Loops, recursion and growth end within the budget, and nothing of the system has a name."""
    with pytest.raises(Broken):
        Running(f"def f():\n    {body}\n").call("f")


@pytest.mark.parametrize("width", [1, 16])
def test_the_same_seed_costs_the_same(width: int) -> None:
    """Also with sixteen in flight, which end out of order; all of them arrive."""
    world, side = Dice("shifts", "shifts"), Side("adaptive")
    found = [asyncio.run(cost_to_target(DiceWorld(world, 3), side, 3, 600, width)) for _ in range(2)]
    assert found[0] == found[1]
    assert math.isfinite(found[0])
