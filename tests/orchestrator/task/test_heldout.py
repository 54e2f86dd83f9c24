"""A held-out split that is none is refused, and a candidate could not tell a held-out trial from a real one."""

from pathlib import Path

import pytest

from orchestrator.domain.verdict import Mode
from orchestrator.task import TaskError, load_task
from orchestrator.task.snapshot import snapshot
from tests.orchestrator.task.conftest import NEXT, Make

INPUTS = "[inputs]\npoints = 'data/points.csv'\n"
LINE = NEXT + 2
OTHER = "inputs = {points = 'held/points.csv'}\n"


def written(make: Make, *keys: str, content: str = "3,4\n") -> Path:
    folder = make(f"{INPUTS}[heldout]\nstep = 0.1\n{''.join(keys)}")
    (folder / "held").mkdir(exist_ok=True)
    (folder / "held/points.csv").write_text(content)
    return folder


def told(folder: Path) -> str:
    with pytest.raises(TaskError) as caught:
        snapshot(load_task(folder), folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_target(make: Make) -> None:
    """Inputs, judge and the judge's variables are the split's; the rest is that of a real trial."""
    folder = written(make, OTHER, "judge = ['python3', 'other.py']\n", "env = {SPLIT = 'held'}\n")
    task = load_task(folder)
    real, held = task.target(Mode.SUBMIT), task.target(Mode.HELDOUT)
    assert held.inputs == {"points": "held/points.csv"}
    assert (held.judge, held.judge_env) == (("python3", "other.py"), {"SPLIT": "held"})
    assert (held.command, held.env, held.limits) == (real.command, real.env, real.limits)
    assert (task.heldout is not None, real.judge_env) == (True, {})
    assert task.heldout is not None
    assert (task.heldout.queries, task.heldout.gate) == (100, True)
    whole = snapshot(task, folder)
    assert whole.heldout_inputs == {"points": folder / "held/points.csv"}
    assert whole.digests["heldout_inputs"] != whole.digests["inputs"]


def test_no_split(make: Make) -> None:
    """A task without one has the digests that it always had, so that its campaigns can be resumed."""
    folder = make(INPUTS)
    task = load_task(folder)
    assert task.target(Mode.HELDOUT) == task.target(Mode.SUBMIT)
    assert "heldout_inputs" not in snapshot(task, folder).digests


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("", ": heldout: is the development split again; give one of inputs, judge, env"),
        (
            "inputs = {points = 'data/points.csv'}\n",
            ": heldout: is the development split: same inputs, same judge command, same judge.env; give it other data",
        ),
        (
            "judge = 'python3 judge.py'\n",
            ": heldout: is the development split: same inputs, same judge command, same judge.env; give it other data",
        ),
        (
            "inputs = {pionts = 'held/points.csv'}\n",
            ": heldout.inputs.pionts: replaces no input; use a name of [inputs]",
        ),
        ("inputs = {points = 'gone.csv'}\n", ": heldout.inputs.points: gone.csv is missing; put the data there"),
        ("inputs = {points = 'judge/gold'}\n", "lie in each other; candidates see inputs, so keep them apart"),
        ("inputs = {points = 'held'}\n", ": heldout.inputs.points: held must be a file like data/points.csv"),
        (
            "inputs = {points = 'held/other.csv'}\n",
            "held/other.csv must have the name that candidates look for; call it points.csv, in another folder",
        ),
        (OTHER + "queries = 0\n", ": heldout.queries: must be at least 1, not 0"),
        (OTHER + "quries = 5\n", ": heldout.quries: unknown key; did you mean queries?"),
    ],
)
def test_splits_that_are_none(make: Make, keys: str, says: str) -> None:
    """One line that names the key and says what to do."""
    folder = written(make, keys)
    (folder / "held/other.csv").write_text("9\n")
    line = told(folder)
    assert says in line
    assert "\n" not in line


@pytest.mark.parametrize("step", ["step = 0", "step = -1", "step = nan", "step = inf", "step = 'x'", ""])
def test_steps_that_are_none(make: Make, step: str) -> None:
    """A step is a number above zero. How finely may be answered is for the user to say: only he knows the metric."""
    with pytest.raises(TaskError, match=r"heldout\.step: must be" if step else r"heldout\.step: is missing; add it"):
        load_task(make(f"{INPUTS}[heldout]\n{step}\n{OTHER}"))


def test_copies_are_the_same_split(make: Make) -> None:
    """The very files of the development split under another name are not held out."""
    line = told(written(make, OTHER, content="1,2\n"))
    assert line == (
        "blastdoor.toml: heldout.inputs: hold the very files of the development split; held-out data must be other data"
    )


@pytest.mark.parametrize("other", ["judge = 'python3 judge.py --held'\n", "env = {SPLIT = 'held'}\n"])
def test_same_inputs_judged_by_other_gold(make: Make, other: str) -> None:
    """Where the judge is told to use other gold, the candidate's inputs may be the same."""
    folder = written(make, OTHER, other, content="1,2\n")
    assert snapshot(load_task(folder), folder).heldout_inputs
    folder = written(make, other)
    assert snapshot(load_task(folder), folder).heldout_inputs == {"points": folder / "data/points.csv"}


def test_shared_judge(make: Make) -> None:
    """In one chamber with the judge, a candidate would see the gold that is to be held out."""
    folder = make(f"mode = 'shared'\n{INPUTS}[heldout]\nstep = 1\n{OTHER}")
    (folder / "held").mkdir()
    (folder / "held/points.csv").write_text("9\n")
    assert 'heldout: a shared judge shows the held-out gold to the candidate; use judge.mode = "data"' in told(folder)
