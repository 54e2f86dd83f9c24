"""What `blastdoor init` writes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.task import Task, TaskError, load_task, write_template
from orchestrator.task.roles import VerifierSpec
from orchestrator.task.sections import (
    Budget,
    CertifySpec,
    GuardSpec,
    HeldOutSpec,
    ImageSpec,
    JudgeSpec,
    MetricSpec,
    PruningSpec,
    SearchSpec,
    StallSpec,
    Trial,
    Tune,
)
from orchestrator.task.snapshot import snapshot
from sandbox import Limits


@pytest.fixture
def written(tmp_path: Path) -> Path:
    folder = tmp_path / "My first task"
    write_template(folder)
    return folder


def test_template_is_a_task(written: Path) -> None:
    """It loads without a warning, is named after its folder, and can be taken."""
    task = load_task(written)
    assert (task.name, task.warnings) == ("my-first-task", ())
    whole = snapshot(task, written)
    assert set(whole.tree) == {"solve.py", "params.json", "points.json"}
    assert (set(whole.judge), set(whole.gold)) == ({"judge.py"}, {"gold/answers.json"})


def test_what_is_commented_out_is_right_too(written: Path) -> None:
    """Every line that is shown as a comment can be used: the task with all of them loads as well."""
    file = written / "blastdoor.toml"
    everything = re.sub(r"^# (?=\[|[a-z_]+ = )", "", file.read_text(), flags=re.MULTILINE)
    assert everything.count("\n# ") < file.read_text().count("\n# ") - 50
    file.write_text(everything)
    task = load_task(written)
    assert task.warnings == ()
    assert task.tune
    assert task.guards
    assert task.metrics[0].target == 0.05


MODELS = (Task, Trial, ImageSpec, JudgeSpec, MetricSpec, CertifySpec, Tune, HeldOutSpec, PruningSpec, GuardSpec, Budget)


def test_every_key_is_shown(written: Path) -> None:
    """A person finds every key in the file itself; only limits of frames, which few judges need, are left out."""
    shown = re.findall(
        r"^(?:# +)?(?:\[\[?([a-z]+)|([a-z_]+) = )", (written / "blastdoor.toml").read_text(), re.MULTILINE
    )
    for model in (*MODELS, StallSpec, SearchSpec, VerifierSpec, Limits):
        keys = {field.alias or name for name, field in model.model_fields.items()} - {"frame_bytes", "frames"}
        assert keys <= {table or key for table, key in shown}, model


def judged(written: Path, outputs: Path) -> dict[str, object]:
    result = written.parent / "result.json"
    env = {"BLASTDOOR_OUTPUTS": str(outputs), "BLASTDOOR_RESULT_PATH": str(result)}
    subprocess.run([sys.executable, "judge.py"], cwd=written / "judge", env=env, check=True, timeout=60)
    found: dict[str, object] = json.loads(result.read_text())
    return found


def solved(written: Path, params: dict[str, object] | None = None) -> float:
    outputs = written.parent / "outputs"
    outputs.mkdir(exist_ok=True)
    if params:
        (written / "workspace/params.json").write_text(json.dumps(params))
    env = {"BLASTDOOR_OUT": str(outputs)}
    subprocess.run([sys.executable, "solve.py"], cwd=written / "workspace", env=env, check=True, timeout=60)
    score = judged(written, outputs)["score"]
    assert isinstance(score, float)
    return score


def test_there_is_something_to_find(written: Path) -> None:
    """The baseline is not the best point of its space, nor is any corner; the ceiling is out of honest reach."""
    baseline = solved(written)
    better = solved(written, {"neighbours": 9, "width": 0.5, "kernel": "gauss", "slope": True})
    worse = solved(written, {"neighbours": 25, "width": 5.0, "kernel": "box", "slope": False})
    assert 0.05 < better < baseline < worse
    ceiling = load_task(written).metrics[0].ceiling
    assert ceiling
    assert ceiling < better / 5


VALUES = ["1e999", "NaN", "true", '"1"', "1" + "0" * 10_000]
HOSTILE = [
    *(b"", b"not json", b"\xff", b"[]", b"{}", b'{"values": []}', b"[" * 100_000, b" " * 1_000_001),
    b'{"values": [' + b"1," * 38 + b"1]}",
    *(b'{"values": [' + b"1," * 39 + value.encode() + b"]}" for value in VALUES),
]


def test_t54_judge_of_the_template_takes_anything(written: Path) -> None:
    """Whatever the candidate left, the judge ends well and says that it is no solution."""
    outputs = written.parent / "outputs"
    assert judged(written, outputs)["valid"] is False, "no output is no solution"
    outputs.mkdir()
    for answers in HOSTILE:
        (outputs / "answers.json").write_bytes(answers)
        assert judged(written, outputs)["valid"] is False, answers[:80]


def test_folder_in_use(written: Path, tmp_path: Path) -> None:
    """Nothing is ever written over; an empty folder is taken."""
    with pytest.raises(TaskError, match="exists and is not an empty folder; name a new one"):
        write_template(written)
    (tmp_path / "file").write_text("")
    with pytest.raises(TaskError, match="file: exists and is not an empty folder"):
        write_template(tmp_path / "file")
    with pytest.raises(TaskError, match="cannot be written"):
        write_template(tmp_path / "file" / "beneath")
    (tmp_path / "empty").mkdir()
    write_template(tmp_path / "empty")
    assert load_task(tmp_path / "empty").name == "empty"


@pytest.mark.parametrize(("name", "expected"), [("---", "my-task"), ("Ünïcode 2", "n-code-2"), ("a" * 80, "a" * 64)])
def test_names_of_folders(tmp_path: Path, name: str, expected: str) -> None:
    """Any folder's name becomes a task's name."""
    write_template(tmp_path / name)
    assert load_task(tmp_path / name).name == expected
