"""Reports that no gate ever made, with as much hostility in them as fits."""

import json

from orchestrator.domain.ending import Ending
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.examine.gate import Changed, Decision, Gated
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.examine.probes import Packages
from orchestrator.examine.witness import Command, Holder, Witness
from orchestrator.ledger import Head
from orchestrator.loop.jobs import Image
from orchestrator.views.judging.evidence import evidence_text
from orchestrator.views.judging.junit import junit
from orchestrator.views.judging.markdown import markdown
from orchestrator.views.judging.report import Report
from orchestrator.views.judging.sarif import sarif

# What only the judge knows; it must be in no document.
SECRET = "the-answer-is-42"
HOSTILE = (
    "</failure>]]><script>alert(1)</script> [click](https://evil.example) ![x](http://evil.example/x.png) @admin #1 "
    "`` ``` ```` | <img src=x onerror=alert(1)> \x1b[31m\x00\ud800\ufffe\u202e &amp; ' \" https://evil.example"
)


def verdict(score: float) -> Verdict:
    return Verdict(
        metrics={"score": score, SECRET: 1.0},
        tasks={SECRET: 1.0},
        tier=Tier.DATA,
        mode=Mode.SUBMIT,
        cohort="c0ffee",
        notes=SECRET,
    )


def report(
    why: str = "worse", *, log: str = "", path: str = "solve.py", decision: Decision = Decision.REJECTED
) -> Report:
    """A change whose score and guard fail for the given reason."""
    steps = (
        Step("change-applies", StepState.PASSED),
        Step(
            "trial",
            StepState.FAILED if log else StepState.PASSED,
            why if log else "",
            1.5,
            log.encode("utf-8", "surrogatepass"),
        ),
        Step("judge", StepState.SKIPPED),
        Step("guards:tests", StepState.FAILED, why),
        Step("score", StepState.FAILED, why),
    )
    return Report(
        task="guess",
        gated=Gated(
            decision,
            why,
            steps,
            Ending.SCORED,
            baseline=verdict(1.0),
            candidate=verdict(0.5),
            tree="f" * 64,
            fingerprint={"cpu": "x"},
        ),
        change_sha256="e" * 64,
        change_bytes=12,
        must_improve=False,
        version="0.1.0",
        started_at="2025-03-01T09:00:00.000000+00:00",
        ended_at="2025-03-01T09:00:05.000000+00:00",
        changed=(Changed(path, 7),),
        folder="tasks/guess/workspace",
        digests={"task": "a" * 64, "workspace": "b" * 64},
        metrics=("score",),
        tier=Tier.DATA,
        witness=Witness(
            "docker/runc",
            "docker/runc: namespaces on the host's kernel",
            "docker/runc: namespaces on the host's kernel",
            (),
            (
                Command(
                    "trial", "i:1", (), ("python3", "solve.py"), ("A",), False, (Holder("wall", 30.0, "controller"),)
                ),
            ),
            (Packages(Image("i:1", "sha256:1"), "Debian", (("deb", "tar", "1.34"),), "", {"uid": "5"}),),
        ),
        head=Head(30, "d" * 64),
    )


def documents(it: Report) -> dict[str, str]:
    """All that leave the gate, by form."""
    return {
        "junit": junit(it),
        "markdown": markdown(it),
        "sarif": json.dumps(sarif(it)),
        "evidence": evidence_text(it),
    }
