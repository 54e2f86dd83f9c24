"""A task folder is written whole or not at all, and nothing else is touched."""

import os
from pathlib import Path

import pytest

from orchestrator.importing import Imported, ImportRequest, write_task
from orchestrator.importing.openevolve import read
from orchestrator.task import TaskError, load_task
from tests.orchestrator.importing.openevolve_tasks import write

BAD = Imported({"blastdoor.toml": b"nonsense = 1\n"})


def good(tmp_path: Path) -> Imported:
    return read(ImportRequest(write(tmp_path / "there"), "small"))


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_only_what_was_made_is_removed(tmp_path: Path) -> None:
    """A folder of somebody else beside the new one stays, whatever its name is and however the import ends."""
    at = tmp_path / "at"
    kept = at / f".here.{os.getpid()}" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("1")
    before = everything(at)
    with pytest.raises(TaskError, match="nonsense"):
        write_task(BAD, at / "here")
    assert everything(at) == before
    write_task(good(tmp_path), at / "here")
    assert load_task(at / "here").name == "small"
    assert before < everything(at)
    assert sorted(it.name for it in at.iterdir()) == [kept.parent.name, "here"]


def test_parents_go_with_a_task_that_failed(tmp_path: Path) -> None:
    """Folders on the way that were made for the task are removed with it; those that were there stay."""
    (tmp_path / "was").mkdir()
    with pytest.raises(TaskError):
        write_task(BAD, tmp_path / "was" / "new" / "newer" / "here")
    assert not everything(tmp_path / "was")
    write_task(good(tmp_path), tmp_path / "was" / "new" / "newer" / "here")
    assert load_task(tmp_path / "was" / "new" / "newer" / "here").name == "small"


def test_a_way_that_cannot_be_made(tmp_path: Path) -> None:
    """One line, and the folders that were made on the way are gone."""
    with pytest.raises(TaskError, match="cannot be written"):
        write_task(good(tmp_path), tmp_path / "new" / ("x" * 300) / "here")
    assert not (tmp_path / "new").exists()


def test_others_may_read_the_task(tmp_path: Path) -> None:
    """The folder has the rights that a new folder has here."""
    (tmp_path / "usual").mkdir()
    write_task(good(tmp_path), tmp_path / "here")
    assert (tmp_path / "here").stat().st_mode == (tmp_path / "usual").stat().st_mode
