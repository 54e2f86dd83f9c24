"""What `audit` found, as a record: kept beside the task, written for programs, and read for the evidence of a gate."""

import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import click

from orchestrator.domain.audit import TERMS, Asked, AuditRecord, AuditRow, Hole, Untried
from orchestrator.domain.verdict import Mode
from orchestrator.examine.audit import AuditReport, Found
from orchestrator.examine.findings import Findings, Row
from orchestrator.examine.gate import CannotJudge
from orchestrator.loop.workbench import Parts
from orchestrator.task import Snapshot, Task
from orchestrator.task.audits import NoAudit, read_audit
from orchestrator.text import printable
from orchestrator.units import stamp, utc_now


def record(task: Task, taken: Snapshot, report: AuditReport, findings: Findings, asked: Asked) -> AuditRecord:
    """For programs, and for people who get it: what the judge printed stays with its author."""
    terms = {name: value for name, value in report.fingerprint.items() if name in TERMS}
    return AuditRecord(
        blastdoor=version("blastdoor"),
        ended_at=stamp(utc_now()),
        task=printable(task.name),
        good=report.good and findings.good,
        why=printable(report.why),
        held=report.held,
        tried=report.tried,
        deaf=report.deaf,
        asked=asked,
        untried=tuple(Untried(adversary=name, why=printable(why)) for name, why in report.untried.items()),
        holes=tuple(_hole(it, file) for it, file in zip(report.found, change_files(report.found), strict=True)),
        baseline=dict(report.baseline) if report.baseline is not None else None,
        floor=dict(report.floor) if report.floor is not None else None,
        digests=dict(taken.digests),
        fingerprint=terms,
        rows=tuple(map(_row, findings.rows)),
    )


def _hole(it: Found, file: str) -> Hole:
    return Hole(
        adversary=it.adversary,
        way=printable(it.way),
        how=it.how,
        metrics=dict(it.values),
        mend=it.mend,
        accepted=it.accepted,
        reproduce=f"blastdoor audit TASK --only {it.adversary!r}",
        change=it.change,
        file=file or None,
    )


def _row(row: Row) -> AuditRow:
    facts = dict(row.facts)
    if isinstance(cheats := facts.get("cheats"), list):
        facts["cheats"] = [{"name": one["name"], "code": one["code"]} for one in cheats]
    return AuditRow.model_validate(
        {
            "section": row.section.value,
            "sign": row.sign.value,
            "text": printable(row.text),
            "advice": printable(row.advice),
            "facts": facts,
        }
    )


def change_files(found: Sequence[Found]) -> list[str]:
    """The name of each one's change, no two alike; empty where there is none."""
    names: list[str] = []
    for it in found:
        plain = re.sub(r"[^a-z0-9]+", "-", it.way.lower()).strip("-")[:60] or "hole"
        name, number = f"{plain}.change", 1
        while name in names:
            number += 1
            name = f"{plain}-{number}.change"
        names.append(name if it.change else "")
    return names


def audit_of(path: Path, taken: Snapshot) -> tuple[AuditRecord, str]:
    """The record and the digest of its bytes. Raises UsageError for a file that is none, is about another task, or
    covers a part of the adversaries only.
    """
    try:
        found, data = read_audit(path)
    except NoAudit as error:
        text = f"--audit {path} is no report of an audit ({printable(str(error))})"
        raise click.UsageError(f"{text}; name the audit.json of `audit --out`") from None
    again = "run `blastdoor audit` again"
    if others := found.other_parts(taken.digests):
        raise click.UsageError(f"--audit {path} is about another task: {', '.join(others)} changed since; {again}")
    if part := found.asked.part:
        raise click.UsageError(f"--audit {path} covers {printable(part)}; {again} without --only and --quick")
    return found, hashlib.sha256(data).hexdigest()


def refuse_other_terms(found: AuditRecord, parts: Parts) -> None:
    """Once it is known in what the change will run. Raises CannotJudge."""
    if others := found.other_terms(parts.jobs.fingerprint({}, Mode.SUBMIT)):
        raise CannotJudge(
            f"--audit was made with something else: {', '.join(others)} changed; run `blastdoor audit` again"
        )


def signed_part(found: AuditRecord, digest: str) -> dict[str, object]:
    """What of it a reviewer signs."""
    return {
        "good": found.good,
        "score": printable(found.score),
        "held": found.held,
        "tried": found.tried,
        "untried": [it.adversary for it in found.untried],
        "accepted": list(found.asked.accept),
        "holes": [printable(it.way) for it in found.holes],
        "deaf": found.deaf,
        "ended_at": printable(found.ended_at),
        "sha256": digest,
    }
