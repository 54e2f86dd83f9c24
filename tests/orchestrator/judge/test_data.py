"""What reaches the judge's chamber, and what is kept of what comes back."""

import pytest

from orchestrator.change import Tree
from orchestrator.domain.records import Spent
from orchestrator.domain.verdict import Mode
from orchestrator.judge.data import chosen_outputs, contract_variables, judge_files, read_judgement, read_result
from sandbox import Ending, Outcome

RESULT = {"result.json": b'{"score": 1.5}'}


def test_traces_and_metrics_are_kept_as_they_came() -> None:
    """E2 and C6: a trace for each task and the stream of metrics; nothing else that the judge left."""
    left = {"traces/a.json": b'{"task_id": "a", "score": 1}', "metrics.csv": b"iteration,loss\n1,2\n", "scratch": b"x"}
    judgement = read_result({**RESULT, **left}, Spent())
    assert set(judgement.traces or {}) == {"traces/a.json", "metrics.csv"}
    assert judgement.result
    assert judgement.result.values == {"score": 1.5, "loss": 2.0}


def test_a_judge_that_did_not_end_well_has_said_nothing() -> None:
    """What it published before it crashed is not a score."""
    outcome = Outcome(Ending.FAILED, exit_code=1, outputs=RESULT)
    judgement = read_judgement(outcome, Spent())
    assert (judgement.result, judgement.fault) == (None, "judge failed")


@pytest.mark.parametrize(
    ("patterns", "names"),
    [((), {"a.json", "deep/b.json"}), (("*.json",), {"a.json"}), (("**/*.json",), {"a.json", "deep/b.json"})],
)
def test_which_outputs_reach_the_judge(patterns: tuple[str, ...], names: set[str]) -> None:
    """All of them, or those that the task names in the same words as `editable`."""
    assert set(chosen_outputs({"a.json": b"", "deep/b.json": b""}, patterns)) == names


def test_the_judges_folder() -> None:
    """Code and gold as they lie, with our helper, which a file of the judge's own replaces."""
    files = judge_files(Tree.of({"judge.py": "x"}), Tree.of({"gold/a.json": "y"}))
    assert set(files) == {"judge/judge.py", "judge/gold/a.json", "judge/blastdoor_judge.py"}
    own = judge_files(Tree.of({"blastdoor_judge.py": "mine"}), Tree())
    assert own["judge/blastdoor_judge.py"].data == b"mine"


def test_both_ecosystems_are_told_the_same() -> None:
    """E2: judges written for the other one find their variables."""
    told = contract_variables(Mode.TUNE, "1.3")
    assert told["EVO_RESULT_PATH"] == told["BLASTDOOR_RESULT_PATH"]
    assert told["EVO_TRACES_DIR"] == told["BLASTDOOR_TRACES_DIR"]
    assert (told["EVO_EXPERIMENT_ID"], told["BLASTDOOR_MODE"]) == ("1.3", "tune")
