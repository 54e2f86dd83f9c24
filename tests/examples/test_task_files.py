"""The task files of the examples: read without a warning, with a baseline that names every parameter of the space."""

import json

import pytest

from orchestrator.task import load_task
from tests.examples.judging import EXAMPLES

NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/blastdoor.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_task_file_is_good(name: str) -> None:
    task = load_task(EXAMPLES / name)
    assert task.warnings == ()
    if task.parameters:
        baseline = json.loads((EXAMPLES / name / "workspace" / task.parameters.file).read_text())
        assert set(task.parameters.space) == set(baseline)


def test_what_each_shows() -> None:
    """Which metric is measured how, and what nobody may edit."""
    digits, speedup, tuning, matmul = (
        load_task(EXAMPLES / name) for name in ("digits", "speedup", "tuning", "matmul_discovery")
    )
    assert "test_train.py" not in digits.editable
    assert (speedup.judge.mode, speedup.metrics[0].timing, speedup.search.width) == ("relay", True, 1)
    assert tuning.pruning
    assert (tuning.pruning.rule, tuning.pruning.goal, tuning.metrics[0].goal) == ("median", "lower", "higher")
    assert (matmul.metrics[0].target, matmul.metrics[0].ceiling) == (7, 7)
