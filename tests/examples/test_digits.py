"""The digits example: right answers are counted, everything else is refused, and the labels are out of reach."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.task import load_task
from sandbox import Bundle, DockerConfig, ImageSpec, InputStore, Job, Limits
from tests.examples.judging import EXAMPLES, check_refused, judged, lines, rows

FOLDER = EXAMPLES / "digits"
LABELS = [row[0] for row in rows(FOLDER / "judge/gold/labels.csv")]
DEV_LABELS = [row[0] for row in rows(FOLDER / "judge/gold/dev_labels.csv")]


def test_no_labels_in_the_inputs() -> None:
    """Dev and test rows are pixels alone; only the training rows have a label."""
    assert {len(row) for row in rows(FOLDER / "inputs/train/images.csv")} == {65}
    assert {len(row) for row in rows(FOLDER / "inputs/dev/images.csv")} == {64}
    assert {len(row) for row in rows(FOLDER / "inputs/test/images.csv")} == {64}
    assert len(rows(FOLDER / "inputs/test/images.csv")) == len(LABELS)
    assert len(rows(FOLDER / "inputs/dev/images.csv")) == len(DEV_LABELS)


def test_no_row_is_in_two_parts() -> None:
    """Nothing to be read is among what is learnt from."""
    train = {tuple(row[:64]) for row in rows(FOLDER / "inputs/train/images.csv")}
    dev, test = ({tuple(row) for row in rows(FOLDER / f"inputs/{name}/images.csv")} for name in ("dev", "test"))
    assert not train & dev
    assert not train & test
    assert not dev & test


def test_all_right(tmp_path: Path) -> None:
    """The labels themselves score one; the task's ceiling is below that."""
    result = judged("digits", {"predictions.csv": lines(LABELS)}, tmp_path)
    assert result["score"] == result["metrics"]["worst_digit"] == 1.0
    assert set(result["tasks"]) == set("0123456789")
    ceiling = load_task(FOLDER).metrics[0].ceiling
    assert ceiling
    assert ceiling < 1.0


def test_partly_right(tmp_path: Path) -> None:
    """Always the same digit finds that digit and no other."""
    result = judged("digits", {"predictions.csv": lines(["3"] * len(LABELS))}, tmp_path)
    assert result["score"] == LABELS.count("3") / len(LABELS)
    assert result["metrics"]["worst_digit"] == 0.0
    assert result["tasks"]["3"] == 1.0


def test_tuning_has_labels_of_its_own(tmp_path: Path) -> None:
    """With --dev the dev labels count, and predictions for the test rows are no answer."""
    (tmp_path / "dev").mkdir()
    assert judged("digits", {"predictions.csv": lines(DEV_LABELS)}, tmp_path / "dev", "--dev")["score"] == 1.0
    (tmp_path / "test").mkdir()
    assert judged("digits", {"predictions.csv": lines(LABELS)}, tmp_path / "test", "--dev")["valid"] is False


WRONG = [
    ("", "has 0 lines"),
    (lines(LABELS[:-1]), "has 1046 lines, not 1047"),
    (lines([*LABELS, "1"]), "has 1048 lines, not 1047"),
    (lines([*LABELS, *LABELS]), "more than 1048 rows"),
    (lines(["10", *LABELS[1:]]), "line 1 of predictions.csv is not a digit"),
    (lines(["3.0", *LABELS[1:]]), "not a digit"),
    (lines(["nan", *LABELS[1:]]), "not a digit"),
    (lines(["-1", *LABELS[1:]]), "not a digit"),
    (lines(["\N{ARABIC-INDIC DIGIT THREE}", *LABELS[1:]]), "not a digit"),
    (lines(["9" * 5000, *LABELS[1:]]), "not a digit"),
    (lines([f"{label},{label}" for label in LABELS]), "or 1 columns"),
    ("x" * 200_000, "more than 100000 bytes"),
    (b"\xff\n" * 1047, "not UTF-8"),
    (b"\x00\n" * 1047, "NUL"),
]


def test_what_is_no_answer(tmp_path: Path) -> None:
    """Too few or too many lines, no classes, or no text."""
    check_refused("digits", "predictions.csv", {str(number): it for number, it in enumerate(WRONG)}, tmp_path)


@pytest.mark.parametrize(("extra", "code"), [(0, 0), (30_000, 1)])
def test_guard_on_size(extra: int, code: int, tmp_path: Path) -> None:
    """A candidate that carries answers along is too large."""
    for folder in ("judge", "candidate"):
        (tmp_path / folder).mkdir()
    (tmp_path / "candidate/train.py").write_bytes((FOLDER / "workspace/train.py").read_bytes() + b"#" * extra)
    command = [sys.executable, str(FOLDER / "judge/small.py")]
    assert subprocess.run(command, cwd=tmp_path / "judge", capture_output=True, check=False).returncode == code


@pytest.mark.touching("examples")
@pytest.mark.docker
async def test_in_the_baked_image(tmp_path: Path) -> None:
    """The trainer and its tests run in the image, in both modes; scikit-learn's own copy of the labels is gone."""
    task = load_task(FOLDER)
    base = task.image.base or "blastdoor-trial:latest"
    spec = ImageSpec(base=base, pip=task.image.pip, apt=task.image.apt, run=task.image.run)
    config = DockerConfig(inputs_folder=tmp_path / "store")
    image = await config.bake(spec, lambda line: None)
    store = InputStore(config.inputs_folder)
    files = {path.name: path.read_bytes() for path in (FOLDER / "workspace").iterdir() if path.is_file()}
    leak = "python3 -c 'from sklearn.datasets import load_digits; load_digits()' && exit 9"
    script = f"{leak}; python3 -m unittest --quiet && python3 train.py"
    backend = await config.connect()
    try:
        for mode, name, right in (("submit", "test", LABELS), ("tune", "dev", DEV_LABELS)):
            inputs = (
                store.add("train", FOLDER / "inputs/train"),
                store.add("rows", FOLDER / "inputs" / name),
            )
            job = Job(
                command=("sh", "-c", script),
                image=image.name,
                env=task.trial.env | {"BLASTDOOR_MODE": mode},
                limits=Limits(wall=600),
                inputs=inputs,
            )
            async with await backend.open(job) as chamber:
                outcome = await chamber.run(Bundle(files))
            assert outcome.exit_code == 0, outcome.log_tail.decode()
            assert b"digits.csv" in outcome.log_tail
            found = outcome.outputs["predictions.csv"].decode().split()
            share = sum(one == other for one, other in zip(found, right, strict=True)) / len(right)
            assert 0.4 < share < 0.7, "the baseline is a poor reader"
    finally:
        await backend.close()


@pytest.mark.parametrize(
    ("params", "right"),
    [({"rule": "vote"}, "112"), ({"rule": "weights", "w1": 0, "w2": 0, "w3": 1}, "312")],
)
def test_members_vote(params: dict[str, object], right: str, tmp_path: Path) -> None:
    """The second stage is a task, too: what the members said is counted, by weights where there are any."""
    assert load_task(FOLDER).combination().parameters
    for name, said in {"1.1": "122", "1.2": "111", "1.3": "312"}.items():
        (tmp_path / "pool" / name).mkdir(parents=True)
        (tmp_path / "pool" / name / "predictions.csv").write_text(lines(list(said)))
    (tmp_path / "pool/members.json").write_text(json.dumps({"members": ["1.1", "1.2", "1.3"]}))
    (tmp_path / "params.json").write_text(json.dumps(params))
    code = f"import combine, pathlib; combine.main(pathlib.Path({str(tmp_path)!r}))"
    environment = os.environ | {"BLASTDOOR_OUT": str(tmp_path), "PYTHONPATH": str(FOLDER / "combine")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "predictions.csv").read_text() == lines(list(right))
