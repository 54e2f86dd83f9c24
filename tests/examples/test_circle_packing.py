"""The circle packing example: an honest packing is measured exactly, everything else is refused in one line."""

import json
import math
import random
import statistics
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator.task import Choice, Float, Int, load_task
from tests.examples.judging import EXAMPLES, check_refused, judged, module_of

FOLDER = EXAMPLES / "circle_packing"
BASELINE = json.loads((FOLDER / "workspace/params.json").read_text())
GOOD = BASELINE | {"layout": "hexagonal", "steps": 1000, "growth": 0.1, "cooling": 2.0, "give": 0.5}

Packings = dict[str, list[list[float]]]


@pytest.fixture(scope="module")
def solve() -> ModuleType:
    return module_of(FOLDER / "workspace/solve.py")


def grid(n: int) -> list[list[float]]:
    """A packing that fits exactly, touching everywhere: eighths are exact in binary."""
    side = 8
    return [[(i % side + 0.5) / side, (i // side + 0.5) / side, 0.5 / side] for i in range(n)]


def honest() -> Packings:
    return {"n26": grid(26), "n17": grid(17)}


def changed(instance: str, index: int, circle: list[Any]) -> dict[str, Any]:
    packings: dict[str, Any] = honest()
    packings[instance][index] = circle
    return packings


def test_the_candidate_is_told_what_the_judge_asks() -> None:
    """Inputs and gold name the same instances; the judge only reads its own."""
    problem = json.loads((FOLDER / "judge/gold/problem.json").read_text())
    assert json.loads((FOLDER / "inputs/instances.json").read_text()) == problem["instances"]


def test_exact_contact_is_allowed(tmp_path: Path) -> None:
    """Circles that touch without a gap are valid, and the sum is exact."""
    result = judged("circle_packing", {"packing.json": json.dumps(honest())}, tmp_path)
    assert result["valid"]
    assert result["score"] == result["metrics"]["score"] == result["tasks"]["n26"] == 26 / 16
    assert result["metrics"]["n17"] == result["tasks"]["n17"] == 17 / 16
    assert len(list((tmp_path / "traces").iterdir())) == 2


@pytest.mark.parametrize("params", [BASELINE, GOOD], ids=["baseline", "good"])
def test_solver_to_judge(
    solve: ModuleType, params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the solver leaves is valid by exact arithmetic; the baseline is poor, a good point is not."""
    (tmp_path / "params.json").write_text(json.dumps(params))
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/problem").symlink_to(FOLDER / "inputs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLASTDOOR_OUT", str(tmp_path))
    solve.main(tmp_path / "inputs")
    (tmp_path / "judging").mkdir()
    result = judged("circle_packing", {"packing.json": (tmp_path / "packing.json").read_bytes()}, tmp_path / "judging")
    assert result["valid"], result["notes"]
    assert result["score"] < 2.0 if params == BASELINE else result["score"] > 2.5
    assert result["score"] < 2.64


def test_random_search_climbs(solve: ModuleType) -> None:
    """Of a dozen random points the median is far above the baseline, and the best above the median."""
    space = load_task(FOLDER).parameters
    assert space
    rng = random.Random(1)
    scores = [sum(c[2] for c in solve.pack(26, drawn(space.space, rng) | {"steps": 400})) for _ in range(12)]
    assert statistics.median(scores) > 2.0 > 1.5 > sum(c[2] for c in solve.pack(26, BASELINE))
    assert max(scores) > 2.5


def drawn(space: Any, rng: random.Random) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for name, axis in space.items():
        if isinstance(axis, Choice):
            point[name] = rng.choice(axis.values)
        elif isinstance(axis, Int):
            point[name] = rng.randrange(axis.low, axis.high + 1, axis.step)
        else:
            assert isinstance(axis, Float)
            low, high = (math.log(axis.low), math.log(axis.high)) if axis.log else (axis.low, axis.high)
            value = rng.uniform(low, high)
            point[name] = math.exp(value) if axis.log else value
    return point


CHEATS: dict[str, tuple[Any, str]] = {
    "overlap by 1e-8": (changed("n26", 0, [1 / 16, 1 / 16 + 1e-8, 1 / 16]), "circles 0 and 8 overlap"),
    "overlap by one bit": (changed("n26", 0, [1 / 16, math.nextafter(1 / 16, 1), 1 / 16]), "overlap"),
    "too large by one bit": (changed("n26", 25, [0.1875, 0.4375, math.nextafter(1 / 16, 1)]), "overlap"),
    "outside by 1e-12": (changed("n26", 0, [1 / 16 - 1e-12, 1 / 16, 1 / 16]), "not inside the unit square"),
    "far outside": (changed("n26", 0, [5, 5, 1]), "not inside the unit square"),
    "negative radius": (changed("n26", 0, [0.5, 0.9, -0.1]), "negative radius"),
    "the same circle twice": (changed("n26", 0, grid(26)[1]), "circles 0 and 1 overlap"),
    "one in another": (changed("n26", 0, [0.1875, 0.0625, 0.01]), "circles 0 and 1 overlap"),
    "one circle too few": ({"n26": grid(25), "n17": grid(17)}, "n26: must be a list of 26 circles"),
    "one circle too many": ({"n26": grid(27), "n17": grid(17)}, "n26: must be a list of 26 circles"),
    "bad in the other instance": (changed("n17", 0, grid(26)[1]), "n17: circles 0 and 1 overlap"),
    "missing instance": ({"n26": grid(26)}, "one packing for each of n26, n17"),
    "another instance": (honest() | {"n99": grid(26)}, "one packing for each of n26, n17"),
    "not an object": ([grid(26)], "one packing for each"),
    "no list": (honest() | {"n26": {"circles": grid(26)}}, "must be a list"),
    "text for a circle": (changed("n26", 0, "abc"), "not [x, y, r]"),  # type: ignore[arg-type]  # hostile
    "two numbers": (changed("n26", 0, [0.1, 0.1]), "not [x, y, r]"),
    "four numbers": (changed("n26", 0, [0.1, 0.1, 0.1, 0.1]), "not [x, y, r]"),
    "text for a number": (changed("n26", 0, ["x", 0.1, 0.1]), "circle 0 must be a finite number"),
    "a truth value": (changed("n26", 0, [True, 0.1, 0.1]), "circle 0 must be a finite number"),
    "nothing": (changed("n26", 0, [None, 0.1, 0.1]), "circle 0 must be a finite number"),
    "not a number": (changed("n26", 0, [0.1, 0.1, math.nan]), "not finite"),
    "infinite": (changed("n26", 0, [0.1, 0.1, math.inf]), "not finite"),
    "huge whole number": (changed("n26", 0, [10**300, 10**300, 10**300]), "not inside the unit square"),
    # What is no JSON of ours is the helper's to refuse (`tests/orchestrator/judge`).
    "cut short": (b"", "not JSON"),
    "too large": (b" " * 200_000, "more than 100000 bytes"),
    "no file": (None, "No such file"),
}


def test_cheats_are_refused(tmp_path: Path) -> None:
    """Whatever overlaps, sticks out, or is no packing."""
    check_refused("circle_packing", "packing.json", CHEATS, tmp_path)
