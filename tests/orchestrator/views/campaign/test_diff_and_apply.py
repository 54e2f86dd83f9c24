"""A diff is shown like git shows it; applying it changes exactly these files, or nothing."""

import os
from pathlib import Path

import pytest

from orchestrator.change import File, Tree
from orchestrator.domain.ending import Ending
from orchestrator.views.campaign.placing import NotPlaced, place
from orchestrator.views.render.layout import diff_lines
from tests.orchestrator.views.campaign.conftest import Stage

OLD = Tree.of({"a.py": "one\n", "gone.py": "bye\n", "same.py": "same\n"})
NEW = Tree({**Tree.of({"a.py": "two\n", "same.py": "same\n"}), "new/run.sh": File(b"#!/bin/sh\n", executable=True)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "mine"
    target.mkdir()
    for path, file in OLD.items():
        (target / path).write_bytes(file.data)
    return target


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_diff_against_the_parent_and_another(stage: Stage) -> None:
    """The stored diff, or the one to any other node."""
    assert '+{"node": "1.1"}' in stage.run("diff", "1.1")
    assert '-{"node": "1.2"}' in stage.run("diff", "1.1", "--from", "1.2")
    assert stage.json("diff", "1.1")["from"] == "1"


def test_candidates_that_are_gone(stage: Stage) -> None:
    """One who looks is told, and leaves no repository of nothing in their place."""
    stage.write()
    (stage.campaign / "candidates.git").rename(stage.folder / "elsewhere")
    assert "candidates.git is not there; bring it back beside the ledger" in stage.refused(
        "diff", "1.1", "--from", "1.2"
    )
    assert not (stage.campaign / "candidates.git").exists()


def test_colours_follow_the_hunk() -> None:
    """A removed line that looks like a header is still a removed line."""
    lines = diff_lines("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n\\ No newline at end of file\n")
    styles = [style for ((_, style),) in lines]
    assert styles == ["bold", "bold", "cyan", "red", "green", "", "bright_black"]


def test_t57_a_diff_is_escaped(stage: Stage) -> None:
    """What a file holds cannot act on the terminal."""
    stage.story.attempt("1", 0.1, files={"solve.py": "print('\x1b[2J')\n"})
    assert "\\x1b[2J" in stage.run("diff", "1.4")


def test_apply_writes_the_workspace(stage: Stage) -> None:
    """A dry run prints the diff and writes nothing. Then the file of the node is there; a second time there is nothing
    to do.
    """
    assert '+{"node": "1.1"}' in stage.run("apply", "best", "--dry-run")
    assert (stage.workspace / "params.json").read_text() == "{}\n"
    assert "1 file (params.json)" in stage.run("apply", "best")
    assert (stage.workspace / "params.json").read_text() == '{"node": "1.1"}\n'
    assert "already" in stage.run("apply", "best")


def test_apply_takes_out_what_was_applied_before(stage: Stage) -> None:
    """A kept node is replaced whole, also by one that changes less, and by the baseline."""
    stage.story.attempt("1.1", 3.0, kept=True, files={"params.json": "5\n", "solve.py": "print(5)\n"})
    assert "2 files (params.json, solve.py)" in stage.run("apply", "best")
    assert "1.1 applied" in stage.run("apply", "1.1")
    assert contents(stage.workspace) == {"params.json": b'{"node": "1.1"}\n', "solve.py": b"print(1)\n"}
    stage.run("apply", "best")
    assert "2 files (params.json, solve.py)" in stage.run("apply", "1")
    assert contents(stage.workspace) == {"params.json": b"{}\n", "solve.py": b"print(1)\n"}
    assert "1 changes no file; nothing was written" in stage.run("apply", "1")


@pytest.mark.parametrize("node", ["1", "1.2"])
def test_apply_keeps_what_was_edited_after_it(stage: Stage, node: str) -> None:
    """What was applied and then edited is a person's own: nothing is written, and nothing is said to be there."""
    stage.run("apply", "best")
    (stage.workspace / "params.json").write_text("mine\n")
    said = stage.run("apply", node) if node == "1" else stage.refused("apply", node)
    assert ("1 changes no file" if node == "1" else "was changed since the run began") in said
    assert (stage.workspace / "params.json").read_text() == "mine\n"


def test_apply_refuses(stage: Stage, tmp_path: Path) -> None:
    """A file that was edited meanwhile is named and kept; --to names another folder, which must have the files as they
    were; what was never promoted has nothing to apply.
    """
    node = stage.story.opened("1")
    assert f"{node} has no candidate" in stage.refused("apply", node)
    (stage.workspace / "params.json").write_text("mine\n")
    assert "params.json was changed since the run began" in stage.refused("apply", "best")
    assert (stage.workspace / "params.json").read_text() == "mine\n"
    other = tmp_path / "other"
    other.mkdir()
    assert "params.json is missing" in stage.refused("apply", "best", "--to", str(other))
    (other / "params.json").write_text("{}\n")
    assert stage.json("apply", "best", "--to", str(other))["written"] == ["params.json"]


def test_place_changes_adds_and_removes(folder: Path) -> None:
    """Exactly the difference is written, with the executable bit; no helper file is left."""
    assert place(folder, OLD, NEW) == ["a.py", "gone.py", "new/run.sh"]
    assert contents(folder) == {"a.py": b"two\n", "same.py": b"same\n", "new/run.sh": b"#!/bin/sh\n"}
    assert os.access(folder / "new/run.sh", os.X_OK)


def test_place_keeps_modes(folder: Path) -> None:
    """Where only the executable bit differs, it is changed, once. A private file stays private, one's own executable
    bit too; a setuid bit does not survive new content.
    """
    run = Tree({**OLD, "a.py": File(b"one\n", executable=True)})
    (folder / "a.py").chmod(0o640)
    assert place(folder, OLD, run) == ["a.py"]
    assert (folder / "a.py").stat().st_mode & 0o777 == 0o750
    assert place(folder, OLD, run) == []
    (folder / "a.py").chmod(0o4710)
    place(folder, OLD, NEW)
    assert (folder / "a.py").stat().st_mode & 0o7777 == 0o710


@pytest.mark.parametrize("name", ["a.py", "gone.py", "new/run.sh"])
def test_place_is_all_or_nothing(folder: Path, name: str) -> None:
    """One file that differs stops everything, and the line names it."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("other")
    before = contents(folder)
    with pytest.raises(NotPlaced, match=name):
        place(folder, OLD, NEW)
    assert contents(folder) == before


def test_place_never_follows_a_link(folder: Path, tmp_path: Path) -> None:
    """A link in the place of a file or of a folder is refused; what it points to stays as it was."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("one\n")
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to(outside / "a.py")
    with pytest.raises(NotPlaced, match=r"a\.py is a link"):
        place(folder, OLD, NEW)
    (folder / "a.py").unlink()
    (folder / "a.py").write_text("one\n")
    (folder / "new").symlink_to(outside)
    with pytest.raises(NotPlaced, match="new is a link"):
        place(folder, OLD, NEW)
    assert contents(outside) == {"a.py": b"one\n"}


def test_place_stays_inside(folder: Path) -> None:
    """A path that leads out is refused, wherever it came from; so is a folder that is not there."""
    for path in ("../x", "/etc/x", "a/../../x", "..", "a//b", "x\0y", "a/.GIT/config"):
        with pytest.raises(NotPlaced, match="no plain path"):
            place(folder, Tree(), Tree.of({path: "x"}))
    with pytest.raises(NotPlaced, match="is not a folder"):
        place(folder / "nowhere", OLD, NEW)


def test_place_in_a_folder_that_can_not_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a file cannot be written beside, nothing changes and no helper file is left."""
    before = contents(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotPlaced, match="No space left"):
        place(folder, OLD, NEW)
    assert contents(folder) == before
    assert not (folder / "new").exists()


def test_a_repository_task_is_applied_at_its_folder(tmp_path: Path) -> None:
    """The working tree of the repository, at the folder of the task, is what is written."""
    made = Stage(tmp_path / "task")
    made.story = type(made.story)(
        made.folder, task={"workspace": {"repository": "../repo", "revision": "main", "folder": "sub"}}
    )
    made.story.open().baseline(1.0)
    made.story.attempt("1", 2.0, kept=True)
    mine = tmp_path / "repo" / "sub"
    mine.mkdir(parents=True)
    (mine / "params.json").write_text("{}\n")
    made.run("apply", "best")
    assert (mine / "params.json").read_text() == '{"node": "1.1"}\n'


def test_a_run_that_began_with_a_node_is_applied_from_the_first_root(stage: Stage) -> None:
    """The workspace may be as before the first run, or as the node that the second one began with."""
    story = stage.story
    story.end("1.1.1", Ending.FAILED)
    story.open(run=2)
    story.baseline(2.0, run=2, files={"solve.py": "print(1)\n", "params.json": '{"node": "1.1"}\n'})
    story.attempt("2", 3.0, kept=True, files={"solve.py": "print(2)\n"})
    story.state.set_run(2, start="1.1")
    assert "2 files (params.json, solve.py)" in stage.run("apply", "best")
    (stage.workspace / "solve.py").write_text("print(1)\n")
    assert "1 file (solve.py)" in stage.run("apply", "best")
