"""What `check` makes of scores that differ from run to run."""

import pytest

from orchestrator.domain.certify import Certify, CertifyRule
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Spent
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.examine.findings import Findings, Sign
from orchestrator.loop.rehearsal import Rehearsal
from orchestrator.views.judging.estimates import tell_noise
from sandbox import Usage


def run(score: float) -> Rehearsal:
    verdict = Verdict(metrics={"score": score}, tier=Tier.DATA, mode=Mode.SUBMIT, cohort="c")
    return Rehearsal(None, "", Usage(), b"", 0.1, Spent(), outputs={"a": b"1"}, verdict=verdict)


@pytest.mark.parametrize("rule", list(CertifyRule))
def test_noise_that_the_rule_expects(rule: CertifyRule) -> None:
    """Where repeats decide, a spread is what the task says it is: no warning, and no advice to fix a seed."""
    findings = Findings()
    tell_noise(Ranking([Metric()]), Certify(rule=rule), [run(1.0), run(1.5), run(2.0)], findings)
    told = " ".join(f"{row.text} {row.advice}" for row in findings.rows)
    assert ("seed" in told, findings.count(Sign.WARN) > 0) == (
        (True, True) if rule is CertifyRule.STRICT else (False, False)
    )
    assert ("repeats a candidate until" in told) is (rule is CertifyRule.NOISY)
