"""The gate as SARIF 2.1.0: one result for each thing that failed, at the files that the change touches."""

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from orchestrator.examine.gate import Changed, Decision
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.sinks import sarif_text
from orchestrator.task import FILE
from orchestrator.text import printable
from orchestrator.views.judging.report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LOCATIONS = 100
_RULES = {
    "change-applies": "The change must keep to the paths and sizes that the task allows.",
    "trial": "The candidate must run to its end within its limits, and leave an output.",
    "judge": "The judge must find a solution in the outputs, and a score that can be believed.",
    "guards": "Every guard of the task must pass.",
    "score": "The score must not be worse than the baseline's; where the change must improve, it must be better.",
    "replay": "The score must stand when the change is run again.",
    "repeats": "Repeats must not prove it worse than the baseline; where it must improve, they must prove it better.",
    "held-out": "It must not be worse on the held-out split; where the change must improve, it must be better.",
    "gate": "The change must pass; where it does not and no other step has failed, this one says why.",
}


def sarif(report: Report) -> dict[str, Any]:
    rejected = report.gated.decision is Decision.REJECTED
    failed = [step for step in report.gated.steps if step.state is StepState.FAILED] if rejected else []
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "blastdoor", "version": report.version, "rules": _rules()}},
                "invocations": [_invocation(report)],
                "results": [_result(report, step) for step in failed],
            }
        ],
    }


def _rules() -> list[dict[str, Any]]:
    return [
        {"id": name, "name": name.title().replace("-", ""), "shortDescription": {"text": text}}
        for name, text in _RULES.items()
    ]


def _invocation(report: Report) -> dict[str, Any]:
    judged = report.gated.decision is not Decision.UNJUDGED
    told = {"level": "note" if judged else "error", "message": {"text": sarif_text(report.line)}}
    return {
        "executionSuccessful": judged,
        "startTimeUtc": _utc(report.started_at),
        "endTimeUtc": _utc(report.ended_at),
        "toolExecutionNotifications": [told],
    }


def _result(report: Report, step: Step) -> dict[str, Any]:
    rule = step.name.split(":", 1)[0]
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": "error",
        "message": {"text": sarif_text(step.why)},
        "locations": [_location(report, it) for it in report.changed[:_LOCATIONS]] or [_task_file(report)],
        "partialFingerprints": {"changeAndStep/v1": f"{report.change_sha256}:{printable(step.name)}"},
    }


def _location(report: Report, changed: Changed) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(str(PurePosixPath(report.folder, changed.path)))},
            "region": {"startLine": changed.line},
        }
    }


def _task_file(report: Report) -> dict[str, Any]:
    """Where nothing else can be pointed at: readers of SARIF want a place."""
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(str(PurePosixPath(report.folder).parent / FILE))},
            "region": {"startLine": 1},
        }
    }


def _utc(moment: str) -> str:
    return moment.replace("+00:00", "Z")
