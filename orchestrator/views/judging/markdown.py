"""The gate as a Markdown summary for a pull request. Whatever others wrote stands in code, where nothing acts."""

from orchestrator.domain.verdict import Tier
from orchestrator.examine.gate import Decision, Gated
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.views.campaign import figures
from orchestrator.views.judging.report import Report
from orchestrator.views.render.markdown import code, listing, table

LOG_LINES = 40
_SIGNS = {
    StepState.PASSED: "✅ passed",
    StepState.FAILED: "❌ failed",
    StepState.SKIPPED: "skipped",
    StepState.BROKEN: "❗ broken",
}
_TITLES = {Decision.ACCEPTED: "✅ accepted", Decision.REJECTED: "❌ rejected", Decision.UNJUDGED: "❗ could not judge"}


def markdown(report: Report) -> str:
    gated = report.gated
    lines = [f"## blastdoor gate: {_TITLES[gated.decision]}", "", f"Because: {code(gated.why, 500)}", ""]
    lines += table(["step", "", "time", "why"], [_row(step) for step in gated.steps])
    lines += ["", *_scores(report, gated)]
    for step in gated.steps:
        if step.log and step.state is StepState.FAILED:
            text = "\n".join(step.log.decode("utf-8", "backslashreplace").split("\n")[-LOG_LINES:])
            lines += [f"What {code(step.name)} printed, in the candidate's own words:", "", *listing(text), ""]
    lines += table(["", ""], _facts(report))
    return "\n".join(lines) + "\n"


def _row(step: Step) -> list[str]:
    time = f"{step.seconds:.2f} s" if step.seconds else ""
    return [code(step.name), _SIGNS[step.state], time, code(step.why, 300)]


def _scores(report: Report, gated: Gated) -> list[str]:
    old, new = report.values(gated.baseline), report.values(gated.candidate)
    if not new:
        return []
    rows = [[code(name), figures.score(old.get(name)), figures.score(new.get(name))] for name in report.metrics]
    said = f" (median of {figures.plural(gated.runs, 'repeat')})" if gated.runs else ""
    return [*table(["metric", "baseline", f"with the change{said}"], rows), ""]


def _facts(report: Report) -> list[list[str]]:
    rows = [
        ["task", code(report.task)],
        ["change", code(f"sha256 {report.change_sha256}")],
        ["touches", ", ".join(code(it.path, 100) for it in report.changed[:20]) or "nothing that can be named"],
    ]
    seen = report.witness
    if seen:
        rows.append(["ran on", code(seen.boundary)])
        if seen.judge != seen.boundary:
            rows.append(["judged on", code(seen.judge)])
        rows += [["caveat", code(caveat, 400)] for caveat in seen.caveats]
        rows += [["image", code(f"{it.image.name} {it.image.digest}")] for it in seen.images]
    if report.tier and (caveat := Tier(report.tier).caveat):
        rows.append(["tier", caveat])
    elif report.tier:
        rows.append(["tier", code(report.tier)])
    if report.head:
        rows.append(["ledger", code(report.head.hash)])
    return [*rows, ["blastdoor", code(report.version)]]
