"""A program that is a package: found, copied whole, and read for what it offers."""

from pathlib import Path

import pytest

from orchestrator.importing import ImportRequest, shinka, write_task
from orchestrator.importing.openevolve import read
from orchestrator.task import TaskError, load_task
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR, write

CORE = "import numpy\nfrom ..initial_program import steps\n\ndef solve(x):\n    return steps.double(x)\n"
STEPS = "# EVOLVE-BLOCK-START\ndef double(x):\n    return 2 * x\n# EVOLVE-BLOCK-END\n"


def written(folder: Path, name: str = "initial_program", steps: str = STEPS, **changed: str | None) -> Path:
    write(folder, initial_program__py=None, config__yaml=None, **changed)
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("from .core import solve\n")
    (folder / name / "core.py").write_text(CORE.replace("initial_program", name))
    (folder / name / "steps.py").write_text(steps)
    (folder / name / "table.csv").write_text("1,2\n")
    return folder


@pytest.mark.parametrize("program", [None, "initial_program", "initial_program/", "initial_program/__init__.py"])
def test_a_package_is_the_program(tmp_path: Path, program: str | None) -> None:
    """By the name that programs have, or by that of its folder; what it needs is that of all of its files."""
    found = read(ImportRequest(written(tmp_path / "there"), "small", program=program))
    write_task(found, tmp_path / "task")
    task = load_task(tmp_path / "task")
    assert task.trial.command == ("python3", "-m", "blastdoor_candidate", "initial_program/__init__.py")
    assert task.editable == ("initial_program/steps.py:EVOLVE-BLOCK",)
    assert task.image.pip == ("numpy",)
    names = {"__init__.py", "core.py", "steps.py", "table.csv"}
    assert {it.name for it in (tmp_path / "task" / "workspace" / "initial_program").iterdir()} == names
    assert {it.name for it in (tmp_path / "task" / "judge").iterdir()} == {"evaluator.py", "judge.py"}
    assert "functions=['solve']," in found.files["judge/judge.py"].decode()
    line = "initial_program/__init__.py with 3 other files of its package is the workspace"
    assert any(it.startswith(line) for it in found.mapped)


def test_a_package_without_marks(tmp_path: Path) -> None:
    """All of its Python may be changed."""
    found = read(ImportRequest(written(tmp_path / "there", steps="def double(x):\n    return 2 * x\n"), "small"))
    write_task(found, tmp_path / "task")
    names = ("__init__.py", "core.py", "steps.py")
    assert load_task(tmp_path / "task").editable == tuple(f"initial_program/{it}" for it in names)


def test_a_package_of_shinka(tmp_path: Path) -> None:
    """As its own system names it."""
    evaluate = EVALUATOR.replace("def evaluate(program_path)", "def main(program_path, results_dir)")
    source = written(tmp_path / "there", "initial", evaluator__py=None, evaluate__py=evaluate)
    found = shinka.read(ImportRequest(source, "small"))
    assert "workspace/initial/core.py" in found.files


def test_a_relative_import_without_a_package(tmp_path: Path) -> None:
    """It would fail when the program is loaded, so the import says what to do."""
    source = write(tmp_path, initial_program__py="\nfrom .helper import solve\n", helper__py="def solve(x): return x")
    with pytest.raises(TaskError, match=r"initial_program\.py:2: imports from its own package, and is in none; put it"):
        read(ImportRequest(source, "small"))


NAMED = {
    "gone.py": "is not there; name a file of .*there with --program",
    "parts": "is a folder, and no single file; name a file in it, or put an __init__.py into it",
    "link.py": "is a link, and none is followed",
    "../elsewhere.py": "lies outside of .*there, or in a part that is left out; put it there",
    ".hidden.py": "lies outside of .*there, or in a part that is left out; put it there",
    "there/initial_program.py": "--program is a path in .*there: write --program initial_program.py",
}


@pytest.mark.parametrize("named", NAMED)
def test_a_program_that_cannot_be_had(tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says why: what is there is not said to be missing."""
    source = write(tmp_path / "there")
    (source / "parts").mkdir()
    for path in ("elsewhere.py", "there/.hidden.py", "there/parts/one.py"):
        (tmp_path / path).write_text("")
    (source / "link.py").symlink_to("initial_program.py")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TaskError, match=NAMED[named]):
        read(ImportRequest(source, "small", program=named))
