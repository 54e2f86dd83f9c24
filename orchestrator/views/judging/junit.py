"""The gate as a JUnit test suite: a test case for each thing that was asked of the change."""

import xml.etree.ElementTree as Xml

from orchestrator.examine.gate import Decision
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.sinks import xml_text
from orchestrator.text import printable_lines
from orchestrator.views.judging.report import Report

LOG_LINES = 200


def junit(report: Report) -> str:
    gated = report.gated
    steps = gated.steps
    broken = gated.decision is Decision.UNJUDGED and not any(it.state is StepState.BROKEN for it in steps)
    counts = {
        "tests": len(steps) + broken,
        "failures": sum(it.state is StepState.FAILED for it in steps),
        "errors": sum(it.state is StepState.BROKEN for it in steps) + broken,
        "skipped": sum(it.state is StepState.SKIPPED for it in steps),
    }
    seconds = f"{sum(it.seconds for it in steps):.3f}"
    attributes = {name: str(count) for name, count in counts.items()} | {"time": seconds}
    root = Xml.Element("testsuites", {"name": "blastdoor gate", **attributes})
    named = {"name": xml_text(f"gate {report.task}"), "timestamp": report.started_at[:19]}
    suite = Xml.SubElement(root, "testsuite", {**named, **attributes})
    for step in steps:
        _case(suite, report, step)
    if broken:
        _case(suite, report, Step("gate", StepState.BROKEN, gated.why))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(suite: Xml.Element, report: Report, step: Step) -> None:
    case = Xml.SubElement(
        suite,
        "testcase",
        {"classname": xml_text(f"blastdoor.{report.task}"), "name": xml_text(step.name), "time": f"{step.seconds:.3f}"},
    )
    why = xml_text(step.why)
    match step.state:
        case StepState.FAILED:
            Xml.SubElement(case, "failure", {"message": why, "type": "rejected"}).text = why
        case StepState.BROKEN:
            Xml.SubElement(case, "error", {"message": why, "type": "could not judge"}).text = why
        case StepState.SKIPPED:
            Xml.SubElement(case, "skipped", {"message": why})
    if step.log:
        lines = list(printable_lines(step.log))[-LOG_LINES:]
        Xml.SubElement(case, "system-out").text = "\n".join(map(xml_text, lines))
