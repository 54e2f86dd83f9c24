"""A program that is a package: found, copied whole, and read for what it offers."""

from pathlib import Path

import pytest

from orchestrator.importing import ImportRequest
from orchestrator.importing.openevolve import read
from orchestrator.task import TaskError
from tests.orchestrator.importing.openevolve_tasks import task_of, write

CORE = "import numpy\nfrom ..initial_program import steps\n\ndef solve(x):\n    return steps.double(x)\n"
STEPS = "# EVOLVE-BLOCK-START\ndef double(x):\n    return 2 * x\n# EVOLVE-BLOCK-END\n"


PACKAGE = {"__init__.py": "from .core import solve\n", "core.py": CORE, "steps.py": STEPS, "table.csv": "1,2\n"}


def written(folder: Path) -> Path:
    write(folder, initial_program__py=None, config__yaml=None)
    (folder / "initial_program").mkdir()
    for name, text in PACKAGE.items():
        (folder / "initial_program" / name).write_text(text)
    return folder


@pytest.mark.parametrize("program", [None, "initial_program", "initial_program/", "initial_program/__init__.py"])
def test_a_package_is_the_program(tmp_path: Path, program: str | None) -> None:
    """By the name that programs have, or by that of its folder; what it needs is that of all of its files."""
    found = read(ImportRequest(written(tmp_path / "there"), "small", program=program))
    task = task_of(tmp_path, found)
    assert task.trial.command == ("python3", "-m", "blastdoor_candidate", "initial_program/__init__.py")
    assert task.editable == ("initial_program/steps.py:EVOLVE-BLOCK",)
    assert task.image.pip == ("numpy",)
    assert {it.name for it in (tmp_path / "here" / "workspace" / "initial_program").iterdir()} == set(PACKAGE)
    assert {it.name for it in (tmp_path / "here" / "judge").iterdir()} == {"evaluator.py", "judge.py"}
    assert "functions=['solve']," in found.files["judge/judge.py"].decode()


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
