"""The gate as a Markdown summary for a pull request. It is made of the blocks that a report has."""

from orchestrator.domain import figures
from orchestrator.examine.gate import Decision, Gated
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.views.judging.report import Report
from orchestrator.views.render.markdown import blocks
from orchestrator.views.render.model import Block, Listing, Part, Prose, Quote, Table, Words, join

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
    body: list[Block] = [Prose(["Because: ", Quote(gated.why, 500)])]
    body += [Table(["step", "", "time", "why"], [_row(step) for step in gated.steps]), *_scores(report, gated)]
    for step in gated.steps:
        if step.log and step.state is StepState.FAILED:
            text = "\n".join(step.log.decode("utf-8", "backslashreplace").split("\n")[-LOG_LINES:])
            body += [Prose(["What ", Quote(step.name), " printed, in the candidate's own words:"]), Listing(text)]
    body.append(Table(["", ""], _facts(report)))
    return "\n".join([f"## blastdoor gate: {_TITLES[gated.decision]}", "", *blocks(body)])


def _row(step: Step) -> list[Words]:
    time = f"{step.seconds:.2f} s" if step.seconds else ""
    return [Quote(step.name), _SIGNS[step.state], time, Quote(step.why, 300)]


def _scores(report: Report, gated: Gated) -> list[Block]:
    old, new = report.values(gated.baseline), report.values(gated.candidate)
    if not new:
        return []
    rows: list[list[Words]] = [
        [Quote(name), figures.score(old.get(name)), figures.score(new.get(name))] for name in report.metrics
    ]
    said = f" (median of {figures.plural(gated.runs, 'repeat')})" if gated.runs else ""
    return [Table(["metric", "baseline", f"with the change{said}"], rows)]


def _facts(report: Report) -> list[list[Words]]:
    touched: list[Part] = join([Quote(it.path, 100) for it in report.changed[:20]], ", ")
    rows: list[list[Words]] = [
        ["task", Quote(report.task)],
        ["change", Quote(f"sha256 {report.change_sha256}")],
        ["touches", touched or "nothing that can be named"],
    ]
    seen = report.witness
    if seen:
        rows.append(["ran on", Quote(seen.boundary)])
        if seen.judge != seen.boundary:
            rows.append(["judged on", Quote(seen.judge)])
        rows += [["caveat", Quote(caveat, 400)] for caveat in seen.caveats]
        rows += [["image", Quote(f"{it.image.name} {it.image.digest}")] for it in seen.images]
    if report.tier:
        rows.append(["tier", report.tier.terms.caveat or Quote(report.tier)])
    if report.audit:
        rows.append(["audit of the judge", Quote(str(report.audit["score"]))])
    if report.head:
        rows.append(["ledger", Quote(report.head.hash)])
    return [*rows, ["blastdoor", Quote(report.version)]]
