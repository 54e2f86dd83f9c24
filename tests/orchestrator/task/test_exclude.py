"""A workspace that leaves something out: the layout of a repository that has its own judge."""

from pathlib import Path

import pygit2
import pytest

from orchestrator.change import Refusal
from orchestrator.task import Task, TaskError, load_task
from orchestrator.task.snapshot import snapshot
from tests.orchestrator.task.conftest import Make

AROUND = "workspace = '.'\neditable = ['workspace/**', '**/*.py']\nexclude = {}\n[trial]"


def around(make: Make, exclude: list[str], more: str = "") -> Path:
    """The task's folder is its own workspace."""
    folder = make(more, replaced=("[trial]", AROUND.format(exclude)))
    text = (folder / "blastdoor.toml").read_text().replace('editable = ["solve.py", "params.json"]\n', "")
    (folder / "blastdoor.toml").write_text(text)
    return folder


def refusal(task: Task, path: str) -> str:
    with pytest.raises(Refusal) as caught:
        task.policy().check(path)
    return str(caught.value)


def test_the_judge_lies_in_the_repository(make: Make) -> None:
    """What is left out reaches no candidate, nor is it a candidate's to write; the judge works as ever."""
    folder = around(make, ["judge", "data/*.csv"])
    task = load_task(folder)
    taken = snapshot(task, folder)
    assert set(taken.tree) == {f"workspace/{name}" for name in ("solve.py", "params.json", "lib/tool.py")} | {
        "blastdoor.toml"
    }
    assert (set(taken.judge), set(taken.gold)) == ({"judge.py"}, {"gold/answers.json"})
    for path in ("judge/judge.py", "judge/new.py", "JUDGE/judge.py"):
        assert refusal(task, path).startswith(f"not editable: {path}")
    task.policy().check("lib/new.py")


def committed(folder: Path) -> None:
    """The task takes what is in its folder now from a commit."""
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace("workspace = '.'", "workspace = {repository = '.', revision = 'HEAD'}"))
    repository = pygit2.init_repository(folder)
    repository.index.add_all()
    who = pygit2.Signature("a", "a@example.org", 0, 0)
    repository.create_commit("HEAD", who, who, "all", repository.index.write_tree(), [])


@pytest.mark.parametrize("at_a_revision", [False, True])
def test_links_in_what_is_left_out(make: Make, at_a_revision: bool) -> None:
    """What is left out is not read either: a virtual environment is full of links, and need not be moved away."""
    folder = around(make, ["judge", "data", "venv"])
    (folder / "venv").mkdir()
    (folder / "venv/python").symlink_to("/usr/bin/python3")
    if at_a_revision:
        committed(folder)
    taken = snapshot(load_task(folder), folder)
    assert not [name for name in taken.tree if name.split("/")[0] in ("judge", "data", "venv")]
    assert "workspace/solve.py" in taken.tree


def renamed(folder: Path) -> None:
    """Commit the folder with the judge under its old name, which the working tree has no more."""
    (folder / "judge").rename(folder / "scorer")
    committed(folder)
    (folder / "scorer").rename(folder / "judge")


@pytest.mark.parametrize(("other", "found"), [("judge.py", "gold/answers.json"), ("gold/answers.json", "judge.py")])
def test_a_revision_that_has_the_judge_elsewhere(make: Make, other: str, found: str) -> None:
    """What is left out by its name of today may have had another one then: no candidate gets to see the gold, nor all
    of the judge's code.
    """
    folder = around(make, ["judge", "data"])
    renamed(folder)
    (folder / "judge" / other).write_text("# changed since")
    with pytest.raises(TaskError, match=f"scorer/{found} of that revision is the judge's {found}.*leave it out"):
        snapshot(load_task(folder), folder)


def test_a_revision_whose_old_judge_is_left_out(make: Make) -> None:
    """Named among what is left out, the old place is in nobody's way; nor is a file that judge and candidates share."""
    folder = around(make, ["judge", "scorer", "data"])
    (folder / "judge/solve.py").write_bytes((folder / "workspace/solve.py").read_bytes())
    renamed(folder)
    assert "workspace/solve.py" in snapshot(load_task(folder), folder).tree


HELDOUT = "[inputs]\ndata = 'data'\n[heldout]\nstep = 1\ninputs = {data = 'held'}\n"


@pytest.mark.parametrize(
    ("exclude", "more", "said"),
    [
        (["data"], "", "judge lies inside the workspace, where candidates see it; move it out, or set exclude"),
        (["judge/gold"], "", "judge lies inside the workspace"),
        (["judge"], HELDOUT, "held lies inside the workspace, where candidates see it; move it out, or exclude it"),
    ],
)
def test_what_must_be_left_out(make: Make, exclude: list[str], more: str, said: str) -> None:
    """Neither the judge nor held-out data may be in what candidates see."""
    folder = around(make, exclude, more)
    (folder / "held").mkdir()
    (folder / "held/points.csv").write_text("3,4\n")
    with pytest.raises(TaskError, match=said):
        load_task(folder)


def test_held_out_data_that_is_left_out(make: Make) -> None:
    """It is still an input, of the trials that may see it."""
    folder = around(make, ["judge", "held"], HELDOUT)
    (folder / "held").mkdir()
    (folder / "held/points.csv").write_text("3,4\n")
    taken = snapshot(load_task(folder), folder)
    assert not [name for name in taken.tree if name.startswith("held")]
    assert taken.heldout_inputs["data"] == folder / "held"


@pytest.mark.parametrize(("key", "value"), [("editable", "lib/tool.py"), ("hidden", "lib/tool.py")])
def test_both_ways(make: Make, key: str, value: str) -> None:
    """A path that is left out can be neither edited nor hidden."""
    folder = make(replaced=("[trial]", "exclude = ['lib']\n[trial]"))
    path = folder / "blastdoor.toml"
    text = path.read_text()
    if key == "editable":
        text = text.replace('"params.json"', f'"{value}"')
    else:
        text = text.replace("exclude =", f"hidden = ['{value}']\nexclude =")
    path.write_text(text)
    with pytest.raises(TaskError, match=f'{key}.*"{value}" is excluded too'):
        load_task(folder)


def test_nothing_to_leave_out(make: Make) -> None:
    """A name that is not there is told; a task without the key is the task that it was."""
    assert "exclude" not in load_task(make()).plain()
    task = load_task(make(replaced=("[trial]", "exclude = ['lbi']\n[trial]")))
    assert any('"lbi" is not in the workspace' in line for line in task.warnings)
    assert Task.from_canonical(task.canonical()).exclude == ("lbi",)
