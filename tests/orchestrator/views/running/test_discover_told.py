"""What `discover` prints and gives to programs of what it found."""

from pathlib import Path

import pytest

from orchestrator.discovery.bench import Found
from orchestrator.discovery.needs import needs_of
from orchestrator.discovery.targets import CommandTarget, FunctionTarget, Pool
from orchestrator.domain.audit import Asked, AuditRecord, AuditRow
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.views.running.discover_told import record_found, tell_audit, tell_check, tell_found
from tests.orchestrator.discovery.repositories import UNITTEST, repository


def test_what_can_be_cheated_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the list, before anything is chosen and audited: what a judge is known to fall to, and which one."""
    there = repository(tmp_path, UNITTEST)
    good = FunctionTarget("words", "top", "words.py", 0.9, 9, ("words.py::top",), (), Pool(b"", 10, 100, (1.0,), 90))
    short = FunctionTarget(
        "words", "unique", "words.py", 0.5, 9, ("words.py::unique",), (), Pool(b"", 9, 9, (1e-4,), 0)
    )
    command = CommandTarget(("sh", "bench.sh"), "bench.sh", (1.0,), ("a.c",), "it is C", "exact", "done")
    found, needs = Found([good, short, command]), needs_of(there, {}, ())
    tell_found(there, needs, found)
    lines = capsys.readouterr().out.splitlines()
    assert "1. words.py::top" in lines
    assert "2. words.py::unique (its judge can be cheated)" in lines
    assert "3. sh bench.sh (its judge can be cheated)" in lines
    assert [it.partition(":")[0].strip() for it in lines if "would" in it] == ["hole", "hole", "hole"]
    holes = [it["holes"] for it in record_found(there, needs, found)["targets"]]
    assert list(map(len, holes)) == [0, 2, 1]


def test_a_check_that_an_audit_follows(capsys: pytest.CaptureFixture[str]) -> None:
    """That its cheats were not tried is not told: the audit tries them."""
    findings = Findings()
    findings.add(Section.CHEATS, Sign.WARN, "not tried, as you said", "try them once before a long campaign")
    findings.add(Section.NOISE, Sign.OK, "seconds = 1 ± 0.1")
    tell_check(findings)
    assert capsys.readouterr().out == "  ok: seconds = 1 ± 0.1\ncheck: ready to be searched\n"


def test_an_audit_whose_baseline_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with the task is not called a hole of its judge."""
    findings = Findings()
    findings.add(Section.WIRING, Sign.FAIL, "nothing faster could be told from the baseline")
    findings.add(Section.CHEATS, Sign.FAIL, "“remembers” beats the baseline")
    findings.add(Section.CHEATS, Sign.FAIL, "1 could not be tried", facts={"untried": ["slow"]})
    told = AuditRecord(
        blastdoor="0",
        ended_at="",
        task="words",
        good=False,
        held=2,
        tried=2,
        asked=Asked(runs=3),
        digests={},
        rows=(AuditRow(section="wiring", sign="fail", text="nothing faster could be told from the baseline"),),
    )
    tell_audit(told, findings)
    assert capsys.readouterr().out.splitlines() == [
        "  not ready: nothing faster could be told from the baseline",
        "  a hole: “remembers” beats the baseline",
        "  not ready: 1 could not be tried",
        "audit: not ready: held against 2 of 2, but the baseline is at fault",
    ]
