"""The matrix multiplication example: a scheme counts when it is right for all matrices, and not at all otherwise."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.examples.judging import EXAMPLES, check_refused, judged, judged_each, module_of

FOLDER = EXAMPLES / "matmul_discovery"
BASELINE = json.loads((FOLDER / "workspace/params.json").read_text())
WINNING = BASELINE | {"flips": 100, "restarts": 2, "swap": 0.3, "limit": 1, "seed": 34}

# Strassen's, as he published it.
STRASSEN = {
    "U": [[1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [-1, 0, 1, 0], [0, 1, 0, -1]],
    "V": [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]],
    "W": [[1, 0, 0, 1], [0, 0, 1, -1], [0, 1, 0, 1], [1, 0, 1, 0], [-1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
}


@pytest.fixture(scope="module")
def solve() -> ModuleType:
    return module_of(FOLDER / "workspace/solve.py")


def changed(name: str, at: int, factor: Any) -> dict[str, Any]:
    scheme: dict[str, Any] = {key: [list(factor) for factor in factors] for key, factors in STRASSEN.items()}
    scheme[name][at] = factor
    return scheme


@pytest.mark.parametrize(("params", "products"), [(BASELINE, 8), (WINNING, 7)], ids=["baseline", "winning"])
def test_solver_to_judge(
    solve: ModuleType, params: dict[str, Any], products: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The baseline's walk is too short to leave the 8 products of school; a point of the space finds 7."""
    (tmp_path / "params.json").write_text(json.dumps(params))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLASTDOOR_OUT", str(tmp_path))
    solve.main()
    (tmp_path / "judging").mkdir()
    outputs: dict[str, str | bytes] = {"scheme.json": (tmp_path / "scheme.json").read_bytes()}
    result = judged("matmul_discovery", outputs, tmp_path / "judging")
    assert result["valid"], result["notes"]
    assert result["metrics"]["products"] == result["score"] == products


def test_products_are_counted(tmp_path: Path) -> None:
    """The judge knows the scheme of 1969 for what it is; what is paid for is counted, whether it is needed or not."""
    more = {name: [*factors, [0, 0, 0, 0]] for name, factors in STRASSEN.items()}
    cases = {name: {"scheme.json": json.dumps(it)} for name, it in (("strassen", STRASSEN), ("more", more))}
    results = judged_each("matmul_discovery", cases, tmp_path)
    assert results["strassen"]["valid"]
    assert [results[name]["metrics"]["products"] for name in cases] == [7, 8]


def test_walk_never_leaves_the_identity(solve: ModuleType, tmp_path: Path) -> None:
    """However far it goes, and with whatever numbers, a walk gives a scheme that is right, of 7 or 8 products."""
    answers = {}
    for seed in range(3):
        scheme = solve.search({"flips": 150, "restarts": 1, "swap": 0.5, "limit": 3, "seed": seed})
        answer = {name: [list(product[k]) for product in scheme] for k, name in enumerate("UVW")}
        answers[str(seed)] = {"scheme.json": json.dumps(answer)}
    results = judged_each("matmul_discovery", answers, tmp_path).values()
    assert {it["metrics"]["products"] for it in results} <= {7, 8}


CHEATS: dict[str, tuple[Any, str]] = {
    "six of seven products": ({name: it[:6] for name, it in STRASSEN.items()}, "not matrix multiplication"),
    "one sign turned": (changed("W", 4, [1, 1, 0, 0]), "not matrix multiplication"),
    "right for the identity only": ({"U": [[1, 0, 0, 0]], "V": [[1, 0, 0, 0]], "W": [[1, 0, 0, 0]]}, "not matrix"),
    "nothing at all": ({"U": [], "V": [], "W": []}, "U must be a list of 1 to 64 products"),
    "unequal": (STRASSEN | {"W": STRASSEN["W"][:6]}, "equally many"),
    "floats": (changed("U", 0, [1.0, 0.0, 0.0, 1.0]), "U[0] must have whole numbers"),
    "halves": (changed("U", 0, [0.5, 0, 0, 1]), "whole numbers"),
    "truth values": (changed("U", 0, [True, False, False, True]), "whole numbers"),
    "huge whole numbers": (changed("V", 2, [10**18, 0, 0, 0]), "from -1000 to 1000"),
    "text": (changed("U", 0, ["1", "0", "0", "1"]), "whole numbers"),
    "nulls": (changed("U", 0, [None] * 4), "whole numbers"),
    "five entries": (changed("U", 0, [1, 0, 0, 1, 0]), "U[0] must be a list of 4"),
    "no list": (changed("U", 0, 7), "U[0] must be a list of 4"),
    "a count of its own": (STRASSEN | {"products": 6}, "an object with U, V and W"),
    "a factor missing": ({"U": STRASSEN["U"], "V": STRASSEN["V"]}, "an object with U, V and W"),
    "not an object": ([STRASSEN], "an object with U, V and W"),
    "far too many": ({name: it * 10 for name, it in STRASSEN.items()}, "1 to 64 products"),
    "cut short": (b"", "not JSON"),
    "too large": (b" " * 200_000, "more than 100000 bytes"),
    "no file": (None, "No such file"),
}


def test_cheats_are_refused(tmp_path: Path) -> None:
    """Wrong but cheap is no score at all."""
    check_refused("matmul_discovery", "scheme.json", CHEATS, tmp_path)
