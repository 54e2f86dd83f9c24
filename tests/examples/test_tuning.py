"""The tuning example: it learns and reports, right answers are counted, everything else is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sandbox.wire.log import Report, parse_report
from tests.examples.judging import EXAMPLES, check_refused, judged, lines, rows

FOLDER = EXAMPLES / "tuning"
BASELINE = json.loads((FOLDER / "workspace/params.json").read_text())
GOOD = BASELINE | {"rate": 0.0056, "momentum": 0.9, "decay": 1e-5, "width": 10, "epochs": 30}
LABELS = [row[0] for row in rows(FOLDER / "judge/gold/labels.csv")]


def trained(params: dict[str, Any], folder: Path) -> tuple[subprocess.CompletedProcess[str], list[Report]]:
    """What a chamber would see of the candidate, and the reports that would be heard."""
    (folder / "params.json").write_text(json.dumps(params))
    code = f"import pathlib, train; train.main(pathlib.Path({str(FOLDER / 'inputs')!r}))"
    environment = {**os.environ, "BLASTDOOR_OUT": str(folder), "PYTHONPATH": str(FOLDER / "workspace")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    reports = [parse_report(line.encode()) for line in done.stdout.splitlines() if line.startswith("::report")]
    assert None not in reports
    return done, [report for report in reports if report]


def test_no_labels_in_the_inputs() -> None:
    """Test points have no class, and none of them is among those that are learnt from."""
    assert {len(row) for row in rows(FOLDER / "inputs/train/points.csv")} == {3}
    assert {len(row) for row in rows(FOLDER / "inputs/test/points.csv")} == {2}
    assert len(rows(FOLDER / "inputs/test/points.csv")) == len(LABELS)
    train = {tuple(row[:2]) for row in rows(FOLDER / "inputs/train/points.csv")}
    assert not train & {tuple(row) for row in rows(FOLDER / "inputs/test/points.csv")}


def test_learns_and_reports(tmp_path: Path) -> None:
    """One report an epoch, steps from 1 on; better parameters end with a lower loss and a higher score."""
    ends, scores = [], []
    for name, params in (("baseline", BASELINE), ("good", GOOD)):
        (tmp_path / name).mkdir()
        done, reports = trained(params, tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert [report.step for report in reports] == list(range(1, params["epochs"] + 1))
        ends.append(reports[-1].value)
        (tmp_path / name / "judged").mkdir()
        answer = (tmp_path / name / "predictions.csv").read_text()
        scores.append(judged("tuning", {"predictions.csv": answer}, tmp_path / name / "judged")["score"])
    assert ends[1] < ends[0]
    assert scores[0] < 0.6 < 0.8 < scores[1]


def test_the_same_again(tmp_path: Path) -> None:
    """The same point trains to the same predictions: a score of it can be measured again."""
    params = BASELINE | {"epochs": 3}
    answers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        trained(params, tmp_path / name)
        answers.append((tmp_path / name / "predictions.csv").read_text())
    assert answers[0] == answers[1]


def test_a_rate_that_is_too_high(tmp_path: Path) -> None:
    """A network that runs away ends with one line, and reports nothing that is not finite."""
    done, reports = trained(BASELINE | {"rate": 1e6, "layers": 2, "decay": 0.01}, tmp_path)
    assert done.returncode != 0
    assert "too high" in done.stderr
    assert not (tmp_path / "predictions.csv").exists()
    assert len(reports) < 40


def test_all_right_and_partly_right(tmp_path: Path) -> None:
    """The labels themselves score one; always the same class finds that class and no other."""
    for name in ("all", "part"):
        (tmp_path / name).mkdir()
    assert judged("tuning", {"predictions.csv": lines(LABELS)}, tmp_path / "all")["score"] == 1.0
    result = judged("tuning", {"predictions.csv": lines(["1"] * len(LABELS))}, tmp_path / "part")
    assert result["score"] == LABELS.count("1") / len(LABELS)
    assert result["tasks"] == {"0": 0.0, "1": 1.0, "2": 0.0}


WRONG = [
    ("", "has 0 lines"),
    (lines(LABELS[:-1]), "has 599 lines, not 600"),
    (lines([*LABELS, "1"]), "has 601 lines, not 600"),
    (lines([*LABELS, *LABELS]), "more than 601 rows"),
    (lines(["3", *LABELS[1:]]), "line 1 of predictions.csv is not a class"),
    (lines(["nan", *LABELS[1:]]), "not a class"),
    (lines(["1.0", *LABELS[1:]]), "not a class"),
    (lines([f"{label},{label}" for label in LABELS]), "or 1 columns"),
    ("x" * 20_000, "more than 10000 bytes"),
    (b"\xff\n" * 600, "not UTF-8"),
]


def test_what_is_no_answer(tmp_path: Path) -> None:
    """Too few or too many lines, no classes, or no text."""
    check_refused("tuning", "predictions.csv", {str(number): it for number, it in enumerate(WRONG)}, tmp_path)
