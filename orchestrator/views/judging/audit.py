"""`blastdoor audit`: adversaries try to cheat a task's judge, before a search does. Records nothing."""

import asyncio
import re
from pathlib import Path
from typing import Any

import click

from orchestrator.examine.audit import AuditReport, audit, unknown_names, with_found
from orchestrator.examine.checkup import make_or_tell
from orchestrator.examine.findings import Findings
from orchestrator.judge.adversaries import ADVERSARIES
from orchestrator.run_options import OPTIONS, Scope
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.campaign.opening import json_option, json_text, print_json, task_argument
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, run_flags
from orchestrator.views.judging.audit_record import record
from orchestrator.views.judging.check import RowsView, cheats_at_once
from orchestrator.views.judging.model_cheats import ask_for_cheats
from orchestrator.wiring.options import resolve
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.sites import open_site, refuse_paid

REPORT = "audit.json"
# Of the caps of a run, those that a few questions to a model need.
_CAPS = ("attempts", "usd", "tokens")
_NO_CAPS = tuple(name for name in OPTIONS if name not in _CAPS)


@click.command("audit")
@click.option("--runs", type=click.IntRange(2, 1000), default=3, show_default=True, help="Number of baseline runs.")
@click.option("--quick", is_flag=True, help="Try only the adversaries that `check` tries.")
@click.option("--only", multiple=True, metavar="NAME", help="Try only this adversary; can be given several times.")
@click.option(
    "--accept", multiple=True, metavar="NAME", help="Do not fail for what this adversary gains; can be repeated."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the report, and a change for `gate` for each hole, into this folder.",
)
@click.option(
    "--proposer", type=click.Choice(["llm"]), help="Ask a model for cheats, too, within --attempts, --usd and --tokens."
)
@click.option("--list", "listed", is_flag=True, help="List the adversaries and exit.")
@run_flags(Scope.SITE)
@run_flags(Scope.CAP, but=_NO_CAPS)
@json_option
@task_argument
@click.pass_obj
def command(
    settings: Settings,
    /,
    task: Path,
    runs: int,
    quick: bool,
    only: tuple[str, ...],
    accept: tuple[str, ...],
    out: Path | None,
    proposer: str | None,
    listed: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Try to cheat the judge of TASK before a search does.

    Runs the baseline, then adversaries that solve nothing, each in chambers of its own. One that beats the baseline by
    more than noise, or gets its score for nothing, shows a hole; what to change in the judge is said. Records nothing.

    Exit code 0 when the judge held, 1 when something gained or could not be tried, 2 when the task cannot be read, 3
    when the engine fails.
    """
    if listed:
        for row in ADVERSARIES:
            modes = " and ".join(word for word, has in (("data", row.forge), ("relay", row.plays)) if has)
            click.echo(f"{row.name} ({modes}{', quick' * row.quick}): {row.why}")
        return Exit.OK
    if unknown := unknown_names([*only, *accept]):
        raise click.UsageError(f"no adversary is called {unknown[0]!r}; --list tells their names")
    loaded = load_task(task)
    taken = snapshot(loaded, task)
    flags = flags_of(given)
    options = resolve(flags, loaded, settings)
    refuse_paid(settings, options.site, "audit")
    view = RowsView(open_screen(), quiet=as_json)
    findings = Findings(view.row, view.doing)

    async def work() -> AuditReport:
        async with open_site(settings, options.site, view.doing) as site:
            parts = await make_or_tell(make_parts(loaded, taken, site), findings)
            if parts is None:
                return AuditReport(why="there is nothing to run it in")
            width = cheats_at_once(parts, loaded, site)
            done = await audit(parts, findings, runs=runs, quick=quick, only=only, accept=accept, width=width)
            if not proposer or done.why:
                return done
            more = await ask_for_cheats(task, site, settings, flags, view.doing)
            return with_found(done, more, findings)

    with view:
        report = asyncio.run(work())
    told = record(loaded, taken, report, findings)
    if out:
        _write(out, report, told)
    if as_json:
        print_json(told)
    else:
        _conclude(view, task, report, out)
    return Exit.OK if report.good and report.tried else Exit.NOT_GOOD


def _write(folder: Path, report: AuditReport, told: dict[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / REPORT).write_text(json_text(told) + "\n")
        for it in report.found:
            if it.change:
                (folder / f"{slug(it.way)}.change").write_text(it.change)
    except OSError as error:
        raise click.UsageError(f"--out {folder}: {error.strerror}; name a folder that can be written") from None


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]


def _conclude(view: RowsView, task: Path, report: AuditReport, out: Path | None) -> None:
    holes = [it for it in report.found if not it.accepted]
    if report.why or not report.tried:
        view.say(f"\nnot tried: {report.why or 'no adversary that was asked for has anything to do here'}", "bold red")
        return
    for it in holes[:3]:
        made = f"blastdoor gate {task} --diff {out / slug(it.way)}.change --must-improve" if out and it.change else ""
        view.say(f"again: {made or f'blastdoor audit {task} --only {it.adversary!r}'}", "dim")
    if holes and not out and any(it.change for it in holes):
        view.say("with --out DIR, each hole comes as a change that `blastdoor gate` can judge", "dim")
    verdict = f"held against {report.held} of {report.tried}"
    if report.good:
        view.say(f"\nthe judge holds: {verdict}", "bold green")
    else:
        view.say(f"\nthe judge can be cheated: {verdict}", "bold red")
