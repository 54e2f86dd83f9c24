"""`check` as a person meets it: rows under their sections, logs that cannot act, and a documented exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from orchestrator.domain.certify import Certify, CertifyRule
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Spent
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.examine.findings import Findings, Sign
from orchestrator.loop.rehearsal import Rehearsal
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.views.exits import Exit
from orchestrator.views.judging import check
from orchestrator.views.judging.estimates import tell_noise
from sandbox import Unavailable, Usage
from tests.clicking import runner
from tests.orchestrator.views.judging.stage import SOLVE, Stage, write_task

Check = Callable[..., Result]


@pytest.fixture
def blastdoor_check(monkeypatch: pytest.MonkeyPatch) -> Check:
    def run(stage: Stage, *words: str) -> Result:
        monkeypatch.setattr(check, "open_site", lambda *_: stage.site())
        return runner().invoke(check.command, list(words), obj=Settings(), standalone_mode=False)

    return run


def test_a_sound_task(tmp_path: Path, blastdoor_check: Check) -> None:
    """Sections in their order, a sign before every row, and a last line that says what it comes to."""
    result = blastdoor_check(Stage(), "--runs", "2", "--no-cheats", str(write_task(tmp_path)))
    assert result.return_value == Exit.OK, result.output
    lines = result.output.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads[:-1] == ["wiring", "noise", "cost", "profile", "cheats", "judge's code", "gold"]
    assert heads[-1] == "ready to be searched, with 2 warnings"
    assert all(line.lstrip()[0] in "✓!·→" for line in lines if line.startswith(" "))


def test_a_hostile_log_can_not_act(tmp_path: Path, blastdoor_check: Check) -> None:
    """The tail of the log is shown, escaped; what came before is counted."""
    code = "for number in range(50):\n    print(number)\nprint('\\x1b[2J\\x07 over')\nraise SystemExit(2)\n"
    result = blastdoor_check(Stage(), str(write_task(tmp_path, files={"workspace/solve.py": code})))
    assert result.return_value == Exit.NOT_GOOD
    assert "\\x1b[2J\\x07 over" in result.output
    assert "\x1b" not in result.output
    assert "31 lines before" in result.output
    assert "│ 49" in result.output
    assert "│ 30\n" not in result.output
    assert result.output.endswith("not ready: 1 failure\n")


def test_json(tmp_path: Path, blastdoor_check: Check) -> None:
    """One object with every row, and nothing else on stdout."""
    code = SOLVE + "print('\\x1b[2J')\nraise SystemExit(2)\n"
    result = blastdoor_check(Stage(), "--json", str(write_task(tmp_path, files={"workspace/solve.py": code})))
    found = json.loads(result.stdout)
    assert (found["task"], found["good"], result.return_value) == ("guess", False, Exit.NOT_GOOD)
    assert [row["log"] for row in found["rows"] if row["sign"] == "fail"] == [["\\x1b[2J"]]


def test_what_the_command_line_makes_a_line_of(tmp_path: Path, blastdoor_check: Check) -> None:
    """A task that cannot be read is bad input; an engine that does not answer is the engine's fault."""
    result = blastdoor_check(Stage(), str(tmp_path))
    assert isinstance(result.exception, TaskError)
    assert result.stdout == ""
    stage = Stage()
    stage.world.answers = False
    assert isinstance(blastdoor_check(stage, str(write_task(tmp_path))).exception, Unavailable)


def scored(score: float) -> Rehearsal:
    verdict = Verdict(metrics={"score": score}, tier=Tier.DATA, mode=Mode.SUBMIT, cohort="c")
    return Rehearsal(None, "", Usage(), b"", 0.1, Spent(), outputs={"a": b"1"}, verdict=verdict)


@pytest.mark.parametrize("rule", list(CertifyRule))
def test_noise_that_the_rule_expects(rule: CertifyRule) -> None:
    """Where repeats decide, a spread is what the task says it is: no warning, and no advice to fix a seed."""
    findings = Findings()
    tell_noise(Ranking([Metric()]), Certify(rule=rule), [scored(1.0), scored(1.5), scored(2.0)], findings)
    told = " ".join(f"{row.text} {row.advice}" for row in findings.rows)
    assert ("seed" in told, findings.count(Sign.WARN) > 0) == (
        (True, True) if rule is CertifyRule.STRICT else (False, False)
    )
    assert ("repeats a candidate until" in told) is (rule is CertifyRule.NOISY)
