"""What a run is bound to."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.change import File, Tree
from orchestrator.git import Candidates
from orchestrator.task import Snapshot, TaskError, input_digest, load_task
from orchestrator.task.errors import Wrong
from orchestrator.task.files import plain_names
from orchestrator.task.snapshot import snapshot
from sandbox import InputStore
from tests.conftest import Deep
from tests.orchestrator.task.conftest import Make

INPUTS = "[inputs]\na = 'data'\nb = 'data/points.csv'\n[tune]\ninputs = {b = 'few.csv'}\n"


def taken(folder: Path) -> Snapshot:
    return snapshot(load_task(folder), folder)


def refused(folder: Path) -> str:
    task = load_task(folder)
    with pytest.raises(TaskError) as caught:
        snapshot(task, folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_parts(make: Make) -> None:
    """Workspace, judge and gold are apart; judge and gold together are the judge's folder."""
    folder = make()
    (folder / "workspace/solve.py").chmod(0o755)
    for junk in (".git/config", "__pycache__/x.pyc", "lib/old.pyc", ".blastdoor/ledger.sqlite3"):
        (folder / "workspace" / junk).parent.mkdir(exist_ok=True)
        (folder / "workspace" / junk).write_text("junk")
    whole = taken(folder)
    assert dict(whole.tree) == {
        "lib/tool.py": File(b""),
        "params.json": File(b"{}\n"),
        "solve.py": File(b"print(1)\n", executable=True),
    }
    assert whole.judge == Tree.of({"judge.py": "print(2)\n"})
    assert whole.gold == Tree.of({"gold/answers.json": "[1]\n"})
    assert (whole.inputs, whole.commit) == ({}, None)
    assert set(whole.digests) == {"task", "workspace", "judge", "gold", "inputs", "tune_inputs"}


def test_forms_of_gold(make: Make) -> None:
    """Gold may be a single file of the judge's folder; a judge that computes its score needs none; a gold folder
    without a file was not meant.
    """
    whole = taken(make("gold = './judge/judge.py'"))
    assert (list(whole.judge), list(whole.gold)) == (["gold/answers.json"], ["judge.py"])
    folder = make()
    (folder / "judge/gold/answers.json").unlink()
    assert refused(folder) == "blastdoor.toml: judge.gold: judge/gold holds no file; put the gold there"
    (folder / "judge/gold").rmdir()
    assert len(taken(folder).gold) == 0


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("workspace/lib/tool.py", {"workspace"}),
        ("judge/judge.py", {"judge"}),
        ("judge/gold/answers.json", {"gold"}),
        ("data/points.csv", {"inputs", "tune_inputs"}),
        ("few.csv", {"tune_inputs"}),
    ],
)
def test_digests_tell_what_changed(make: Make, file: str, changed: set[str]) -> None:
    """Each digest is of one part, and of its content only."""
    folder = make(INPUTS)
    (folder / "few.csv").write_text("1\n")
    before = taken(folder).digests
    (folder / file).touch()
    assert taken(folder).digests == before
    (folder / file).write_text("changed")
    after = taken(folder).digests
    assert {name for name in before if before[name] != after[name]} == changed


def test_inputs_by_mode(make: Make) -> None:
    """A tune trial sees all inputs, with its own in the place of those of the same name."""
    folder = make(INPUTS)
    (folder / "few.csv").write_text("1\n")
    whole = taken(folder)
    assert whole.inputs == {"a": folder / "data", "b": folder / "data/points.csv"}
    assert whole.tune_inputs == {"a": folder / "data", "b": folder / "few.csv"}


def test_input_digest_is_the_stores(make: Make, tmp_path: Path) -> None:
    """The digest tells whether the store took the same content that the run was bound to."""
    folder = make()
    for name in ("data/b/1", "data/b.x", "data/a/2/3", "data/__pycache__/x.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    store = InputStore(tmp_path / "store")
    for place in (folder / "data", folder / "data/points.csv"):
        assert input_digest(place) == store.add("x", place).digest


def test_t96_an_input_that_is_too_deep(deep: Deep, make: Make) -> None:
    """It is refused in one line, whatever its walk would take."""
    folder = make("[inputs]\na = 'data'")
    deep(folder / "data", 300)
    assert "data has more than 256 folders in one another; make it flatter" in refused(folder)


@pytest.mark.parametrize(("key", "link"), [("inputs", "data/link"), ("judge.folder", "judge/link")])
def test_links(make: Make, key: str, link: str) -> None:
    """A link in an input could lead to the gold, and the judge's folder is read as plain files too."""
    folder = make("[inputs]\na = 'data'")
    (folder / link).symlink_to(folder / "judge/gold")
    assert refused(folder) == f"blastdoor.toml: {key}: {link} is a link; put what it points to in its place"


def test_special_file(make: Make) -> None:
    """A FIFO in the workspace is refused, not waited for."""
    folder = make()
    os.mkfifo(folder / "workspace/pipe")
    assert refused(folder) == "blastdoor.toml: workspace: workspace/pipe is not a plain file; leave it out"


@pytest.mark.parametrize("name", ["-rf", "a\\b", "new\nline", "\x1b[2J", b"\xff"])
def test_unsafe_names(make: Make, name: str | bytes) -> None:
    """A name that no bundle takes is told while a person can still rename it."""
    folder = make()
    (folder / "workspace" / os.fsdecode(name)).write_text("")
    assert refused(folder).endswith("is unsafe; rename it")


def test_byte_caps(make: Make) -> None:
    """More than a chamber's bundle may hold is not read; the key that would allow it is named."""
    folder = make("limits = {bundle_bytes = '2KiB'}\n[limits]\nbundle_bytes = '1KiB'")
    (folder / "workspace/large.bin").write_bytes(b"x" * 1025)
    assert refused(folder) == (
        "blastdoor.toml: workspace: workspace has more than 1KiB; raise limits.bundle_bytes, "
        "or give large data as [inputs]"
    )
    (folder / "workspace/large.bin").unlink()
    (folder / "judge/gold/large.bin").write_bytes(b"x" * 2049)
    assert refused(folder).startswith("blastdoor.toml: judge.folder: ")
    assert "raise judge.limits.bundle_bytes" in refused(folder)


def test_file_cap(make: Make) -> None:
    """A folder with too many files is told, not walked to its end."""
    with pytest.raises(Wrong, match="has more than 2 files; leave some out"):
        plain_names(make() / "workspace", (), cap=2)


def test_what_vanished_is_one_line(make: Make) -> None:
    """Places are looked at again when they are read."""
    folder = make()
    task = load_task(folder)
    (folder / "judge").rename(folder / "moved")
    with pytest.raises(TaskError, match=r"blastdoor.toml: judge.folder: .* is not a folder"):
        snapshot(task, folder)


def committed(folder: Path, tree: Tree) -> str:
    return Candidates(folder / "repo").write("1", tree, None, "first", datetime(2024, 1, 1, tzinfo=UTC))


def test_repository(make: Make) -> None:
    """A workspace from a repository is what was committed, under the commit that the revision meant: all of it, or a
    folder.
    """
    folder = make(replaced=("[trial]", "workspace = {repository = 'repo', revision = '1', folder = 'src'}\n[trial]"))
    commit = committed(
        folder, Tree.of({"src/solve.py": "1", "src/params.json": "2", "solve.py": "3", "params.json": ""})
    )
    whole = taken(folder)
    assert (whole.commit, whole.tree) == (commit, Tree.of({"solve.py": "1", "params.json": "2"}))
    make(replaced=("[trial]", "workspace = {repository = 'repo', revision = '1'}\n[trial]"))
    assert len(taken(folder).tree) == 4


def test_repository_is_checked_too(make: Make) -> None:
    """Names are compared with what was committed, and a bad revision is one line."""
    folder = make(replaced=("[trial]", "workspace = {repository = 'repo', revision = '1'}\n[trial]"))
    committed(folder, Tree.of({"solve.py/x": "1"}))
    assert refused(folder) == (
        'blastdoor.toml: editable[0]: "solve.py" is a folder; write solve.py/** for all that is in it'
    )
    folder = make(replaced=("[trial]", "workspace = {repository = 'repo', revision = 'nowhere'}\n[trial]"))
    assert refused(folder).startswith("blastdoor.toml: workspace: no commit")
