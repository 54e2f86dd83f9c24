"""The speedup example: every way of counting is right and is measured from outside; what is wrong has no time."""

import itertools
import json
import random
from pathlib import Path

import pytest

from orchestrator.change import File, Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.tier import Tier
from orchestrator.judge.guest.blastdoor_values import Array, decode, encode
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.task import Choice, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.parts import make_parts
from tests.examples.judging import EXAMPLES, module_of
from tests.orchestrator.views.judging.stage import Stage

FOLDER = EXAMPLES / "speedup"
BASELINE = json.loads((FOLDER / "workspace/params.json").read_text())
SOLVE = (FOLDER / "workspace/solve.py").read_text()


async def judged(**files: str) -> Rehearsal:
    """The workspace with other files meets the judge; the programs really run."""
    task = load_task(FOLDER)
    taken = snapshot(task, FOLDER)
    changed = {name.replace("_", "."): File(text.encode()) for name, text in files.items()}
    async with Stage().site() as site:
        return await rehearse(await make_parts(task, taken, site), tree=Tree({**taken.tree, **changed}))


def test_every_way_of_counting_is_right() -> None:
    """All methods agree with plain counting, on points that share places and cells."""
    solve = module_of(FOLDER / "workspace/solve.py")
    rng = random.Random(5)
    points = [(rng.randrange(-50, 50), rng.randrange(-50, 50)) for _ in range(80)]
    space = load_task(FOLDER).parameters
    assert space
    methods, distances = (space.space[name] for name in ("method", "distance"))
    assert isinstance(methods, Choice)
    assert isinstance(distances, Choice)
    pairs = list(itertools.combinations(points, 2))
    wanted = sum((a - u) ** 2 + (b - v) ** 2 <= 225 for (a, b), (u, v) in pairs)
    for method, distance, cell in itertools.product(methods.values, distances.values, (0.1, 1.0, 10.0)):
        solve.PARAMS.update(method=method, distance=distance, cell=cell)
        columns = [
            Array("i4", (80,), b"".join(it.to_bytes(4, "little", signed=True) for it in axis))
            for axis in zip(*points, strict=True)
        ]
        assert solve.solve(*columns, 15) == wanted
        assert solve.solve(*(decode(encode(column)) for column in columns), 15) == wanted


@pytest.mark.alone
@pytest.mark.parametrize("method", ["every pair", "sweep", "cells"])
async def test_measured_from_outside(method: str) -> None:
    """It is called eight times or more, its count is right each time, and there is a time that the channel can tell."""
    run = await judged(params_json=json.dumps(BASELINE | {"method": method}))
    assert run.scored, (run.reason, run.judgement)
    assert run.verdict
    assert run.verdict.tier is Tier.RELAY
    assert run.calibration
    assert run.calibration.calls >= 8
    assert run.verdict.at_most == ()
    assert 0 < run.verdict.metrics["seconds"] <= run.verdict.metrics["slowest"]


WRONG = {
    "one too many": SOLVE.replace("](points, radius)", "](points, radius) + 1"),
    "a guess": "def solve(xs, ys, radius):\n    return 1\n",
    "the first answer again": SOLVE + "\nreal, kept = solve, []\ndef solve(*given):\n"
    "    kept.append(kept[0] if kept else real(*given))\n    return kept[0]\n",
    "a float": SOLVE.replace("return METHODS", "return 1.0 * METHODS"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_is_no_solution(name: str) -> None:
    """However fast, a wrong count has no time."""
    run = await judged(solve_py=WRONG[name])
    assert run.verdict
    assert (run.verdict.valid, run.ending) == (False, None)
    assert "the count is wrong" in run.verdict.notes


async def test_a_clock_of_its_own() -> None:
    """A candidate that stops its clocks is timed all the same."""
    stopped = "import time\nfor name in ('time', 'monotonic', 'perf_counter'):\n    setattr(time, name, float)\n"
    run = await judged(solve_py=stopped + SOLVE)
    assert run.verdict
    assert run.verdict.metrics["seconds"] > 0


async def test_what_does_not_load() -> None:
    """A candidate that does not load fails, and says why."""
    run = await judged(solve_py="import numpy_of_the_future\n")
    assert run.ending is Ending.FAILED
    assert "ModuleNotFoundError" in run.reason


def test_the_example_needs_no_package() -> None:
    """Nothing but the standard library is imported."""
    for path in (FOLDER / "workspace/solve.py", FOLDER / "judge/judge.py"):
        assert "numpy" not in Path(path).read_text()
