"""The matrix multiplication example: a scheme counts when it is right for all matrices, and not at all otherwise."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator.task import load_task
from tests.examples.judging import EXAMPLES, judged

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
    spec = importlib.util.spec_from_file_location("matmul_solve", FOLDER / "workspace/solve.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scored(scheme: Any, folder: Path) -> dict[str, Any]:
    return judged("matmul_discovery", {"scheme.json": json.dumps(scheme)}, folder)


def changed(name: str, at: int, factor: Any) -> dict[str, Any]:
    scheme: dict[str, Any] = {key: [list(factor) for factor in factors] for key, factors in STRASSEN.items()}
    scheme[name][at] = factor
    return scheme


def test_task_file_is_good() -> None:
    """The task is read without a warning, and every parameter of the baseline lies in the space."""
    task = load_task(FOLDER)
    assert task.warnings == ()
    assert task.parameters
    assert set(task.parameters.space) == set(BASELINE)
    assert (task.metrics[0].target, task.metrics[0].ceiling) == (7, 7)


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


def test_strassen(tmp_path: Path) -> None:
    """The judge knows the scheme of 1969 for what it is."""
    result = scored(STRASSEN, tmp_path)
    assert (result["valid"], result["metrics"]["products"]) == (True, 7)


def test_a_product_of_nothing_counts(tmp_path: Path) -> None:
    """What is paid for is counted, whether it is needed or not."""
    scheme = {name: [*factors, [0, 0, 0, 0]] for name, factors in STRASSEN.items()}
    assert scored(scheme, tmp_path)["metrics"]["products"] == 8


def test_walk_never_leaves_the_identity(solve: ModuleType, tmp_path: Path) -> None:
    """However far it goes, and with whatever numbers, a walk gives a scheme that is right, of 7 or 8 products."""
    for seed in range(3):
        params = {"flips": 150, "restarts": 1, "swap": 0.5, "limit": 3, "seed": seed}
        scheme = solve.search(params)
        (tmp_path / str(seed)).mkdir()
        answer = {name: [list(product[k]) for product in scheme] for k, name in enumerate("UVW")}
        result = scored(answer, tmp_path / str(seed))
        assert result["metrics"]["products"] in (7, 8)


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
}


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_cheats_are_refused(name: str, tmp_path: Path) -> None:
    """Wrong but cheap is no score at all; the judge is well, and the note says what was wrong."""
    scheme, why = CHEATS[name]
    result = scored(scheme, tmp_path)
    assert result["valid"] is False
    assert "score" not in result
    assert why in result["notes"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b"[" * 50_000, "nested"),
        (b" " * 200_000, "more than 100000 bytes"),
        (b'{"U": [], "U": [], "V": [], "W": []}', "key twice"),
        (b'{"U": ' + b"9" * 5000 + b', "V": [], "W": []}', "too long"),
        (None, "No such file"),
    ],
)
def test_files_that_are_no_scheme(content: bytes | None, why: str, tmp_path: Path) -> None:
    """Whatever the file holds, the judge answers, at once and with a reason."""
    outputs: dict[str, str | bytes] = {} if content is None else {"scheme.json": content}
    result = judged("matmul_discovery", outputs, tmp_path)
    assert result["valid"] is False
    assert why in result["notes"]
