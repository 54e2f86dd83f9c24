"""What a reviewer signs: one JSON document that says what ran, in which image, under which posture, with what result.

It is written in one way only, so that its SHA-256 stands for it.
"""

import hashlib
from dataclasses import asdict
from typing import Any

from orchestrator.domain.verdict import Verdict
from orchestrator.examine.probes import Packages
from orchestrator.examine.witness import Command
from orchestrator.text import printable
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.judging.report import Report

FORMAT = "blastdoor evidence"
VERSION = 1


def evidence(report: Report) -> dict[str, Any]:
    gated, seen = report.gated, report.witness
    return {
        "format": FORMAT,
        "version": VERSION,
        "blastdoor": report.version,
        "started_at": report.started_at,
        "ended_at": report.ended_at,
        "decision": gated.decision,
        "why": printable(gated.why),
        "ending": gated.ending,
        "must_improve": report.must_improve,
        "task": {"name": report.task, "tier": report.tier, "digests": dict(report.digests)},
        "change": {
            "sha256": report.change_sha256,
            "bytes": report.change_bytes,
            "paths": [printable(it.path) for it in report.changed],
            "base_tree": report.digests.get("workspace"),
            "candidate_tree": gated.tree,
        },
        "steps": [
            {"name": printable(it.name), "state": it.state, "why": printable(it.why), "seconds": it.seconds}
            for it in gated.steps
        ],
        "baseline": _verdict(report, gated.baseline),
        "candidate": _verdict(report, gated.candidate),
        "certified": {
            "rule": gated.rule,
            "repeats": gated.runs,
            "replay": _verdict(report, gated.replay),
        },
        "fingerprint": {name: printable(value) for name, value in gated.fingerprint.items()},
        "ran": [_command(command) for command in seen.commands] if seen else [],
        "posture": _posture(report),
        "images": [_image(packages) for packages in seen.images] if seen else [],
        "ledger": {"seq": report.head.seq, "hash": report.head.hash} if report.head else None,
        **({"audit": dict(report.audit)} if report.audit else {}),
    }


def evidence_text(report: Report) -> str:
    return json_text(evidence(report)) + "\n"


def seal(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _verdict(report: Report, verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {
        "metrics": report.values(verdict),
        "valid": verdict.valid,
        "suspect": list(verdict.suspect),
        "tier": verdict.tier,
        "cohort": verdict.cohort,
    }


def _command(command: Command) -> dict[str, Any]:
    limits = {it.limit: {"value": it.value, "held_by": it.held_by} for it in command.limits}
    return {**asdict(command), "limits": limits}


def _posture(report: Report) -> dict[str, Any] | None:
    """What the chambers of the images saw of themselves before any byte of a candidate arrived."""
    seen = report.witness
    if seen is None:
        return None
    inside = {packages.image.name: _plain(dict(packages.facts)) for packages in seen.images}
    return {
        "backend": seen.backend,
        "boundary": seen.boundary,
        "judge_boundary": seen.judge,
        "caveats": list(seen.caveats),
        "seen_inside": inside,
    }


def _image(packages: Packages) -> dict[str, Any]:
    return {
        "name": packages.image.name,
        "digest": packages.image.digest,
        "system": packages.system or None,
        "packages": [{"type": kind, "name": name, "version": version} for kind, name, version in packages.installed],
        "packages_missing": packages.missing or None,
    }


def _plain(facts: dict[str, str]) -> dict[str, str]:
    return {printable(name): printable(value) for name, value in facts.items()}
