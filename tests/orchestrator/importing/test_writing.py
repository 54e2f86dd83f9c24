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
    assert (at / "here").stat().st_mode == at.stat().st_mode, "others may read it"
    assert before < everything(at)
    assert sorted(it.name for it in at.iterdir()) == [kept.parent.name, "here"]


def test_parents_go_with_a_task_that_failed(tmp_path: Path) -> None:
    """Folders on the way that were made for the task are removed with it; those that were there stay."""
    (tmp_path / "was").mkdir()
    with pytest.raises(TaskError):
        write_task(BAD, tmp_path / "was" / "new" / "newer" / "here")
    with pytest.raises(TaskError, match="cannot be written"):
        write_task(good(tmp_path), tmp_path / "was" / "new" / ("x" * 300) / "here")
    assert not everything(tmp_path / "was")
    write_task(good(tmp_path), tmp_path / "was" / "new" / "newer" / "here")
    assert load_task(tmp_path / "was" / "new" / "newer" / "here").name == "small"


ODD_NAMES = [
    *("../out", "/tmp/out", "workspace/../../out", "workspace//x", "workspace/.git/config", "workspace/a/.GIT/hooks/x"),
    *("workspace/a\0b", "workspace/a\nb", "workspace/\x1b[2J", "workspace/\u202ea", "workspace/\ud800"),
    *(f"workspace/{'a' * 256}", f"workspace/{'a/' * 1000}a"),
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_no_task_may_have(tmp_path: Path, name: str) -> None:
    """Nothing is written outside of the new folder, and no repository in it: git would run what its settings say."""
    found = good(tmp_path)
    before = everything(tmp_path)
    with pytest.raises(TaskError, match=r"^[ -~…]+(which no task may have|nobody sees)[ -~]+$"):
        write_task(Imported({**found.files, name: b"x"}), tmp_path / "here")
    assert everything(tmp_path) == before


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    """Told as what it is, not as a fault of the place that the task is written to."""
    with pytest.raises(TaskError, match="here: workspace/a would be both a file and a folder"):
        write_task(Imported({"workspace/a": b"", "workspace/a/b": b""}), tmp_path / "here")
