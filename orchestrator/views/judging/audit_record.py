"""What `audit` found, as a file: written for programs, and read again for the evidence of a gate."""

import hashlib
import json
from pathlib import Path
from typing import Any

import click

from orchestrator.examine.audit import AuditReport
from orchestrator.examine.findings import Findings
from orchestrator.task import Snapshot, Task
from orchestrator.text import printable
from orchestrator.views.judging.check import record_of

FORMAT = "blastdoor audit"
VERSION = 1
_LARGEST = 16 << 20
# The same judge: its code, its gold, and what the task says of both.
_SAME = ("task", "judge", "gold")


def record(task: Task, taken: Snapshot, report: AuditReport, findings: Findings) -> dict[str, Any]:
    """For programs. The digests say which judge it is about."""
    return {
        "format": FORMAT,
        "version": VERSION,
        **record_of(task, findings),
        "good": report.good,
        "why": printable(report.why),
        "held": report.held,
        "tried": report.tried,
        "baseline": dict(report.baseline) if report.baseline is not None else None,
        "floor": dict(report.floor) if report.floor is not None else None,
        "holes": [
            {
                "adversary": it.adversary,
                "way": printable(it.way),
                "how": it.how,
                "metrics": dict(it.values),
                "mend": it.mend,
                "accepted": it.accepted,
                "reproduce": f"blastdoor audit TASK --only {it.adversary!r}",
                "change": it.change,
            }
            for it in report.found
        ],
        "digests": dict(taken.digests),
    }


def read_audit(path: Path, taken: Snapshot) -> dict[str, object]:
    """What of it a reviewer signs. Raises UsageError for a file that is none, or is about another judge."""
    try:
        data = path.read_bytes()
        found = json.loads(data) if len(data) <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("digests"), dict):
        raise click.UsageError(f"--audit {path} is no report of an audit; name the audit.json of `audit --out`")
    if any(found["digests"].get(name) != taken.digests.get(name) for name in _SAME):
        raise click.UsageError(f"--audit {path} is about another task, judge or gold; run `blastdoor audit` again")
    holes = [str(it.get("way")) for it in found.get("holes", []) if isinstance(it, dict)]
    kept = {name: found.get(name) for name in ("good", "held", "tried")}
    return {**kept, "holes": [printable(it) for it in holes], "sha256": hashlib.sha256(data).hexdigest()}
