"""`blastdoor audit`: adversaries try to cheat a task's judge, before a search does. Campaigns tell its score."""

from pathlib import Path
from typing import Any

import click

from orchestrator.domain.audit import Asked, AuditRecord, Hole
from orchestrator.examine.audit import AuditReport, audit, unknown_names, with_model
from orchestrator.examine.checkup import make_or_tell
from orchestrator.examine.findings import Findings
from orchestrator.judge.adversaries import ADVERSARIES
from orchestrator.run_options import OPTIONS, Scope
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.audits import keep_audit, place_of, write_whole
from orchestrator.task.errors import AUDIT
from orchestrator.task.snapshot import snapshot
from orchestrator.text import printable
from orchestrator.views.campaign.opening import json_option, json_text, task_argument
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, run_flags
from orchestrator.views.judging.audit_record import record
from orchestrator.views.judging.check import RowsView, cheats_at_once
from orchestrator.views.judging.model_cheats import ask_for_cheats
from orchestrator.wiring.options import resolve
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.sites import open_site, refuse_paid

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
    more than noise, or gets its score for nothing, shows a hole; what to change in the judge is said. The score is kept
    beside the task, where its campaigns tell it.

    Exit code 0 when no row failed, 1 when something gained, could not be tried, or is wrong with the baseline, 2 when
    the task cannot be read, 3 when the engine fails.
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
            return with_model(done, more.found, more.judged, findings)

    with view:
        report = run_in_loop(work())
    asked = Asked(runs=runs, quick=quick, only=only, accept=accept, proposer=proposer)
    told = record(loaded, taken, report, findings, asked)
    text = json_text(told.model_dump(mode="json")) + "\n"
    if as_json:
        click.echo(text, nl=False)
    else:
        _conclude(view, task, told, out)
    _keep(task, told, text)
    if out:
        _write(out, told, text)
    return Exit.OK if told.good else Exit.NOT_GOOD


def _keep(task: Path, told: AuditRecord, text: str) -> None:
    """For campaigns of the task to tell. Nothing depends on it, so a folder that cannot be written is no failure."""
    if not told.tried:
        return
    try:
        keep_audit(task, told, text)
    except OSError as error:
        place = printable(str(place_of(task)))
        click.echo(f"not kept for campaigns to tell: {place} cannot be written ({error.strerror})", err=True)


def _write(folder: Path, told: AuditRecord, text: str) -> None:
    """After all was said: a full disk does not lose what was found."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for it in told.holes:
            if it.change and it.file:
                write_whole(folder / it.file, it.change)
        write_whole(folder / Path(AUDIT).name, text)
    except OSError as error:
        raise click.UsageError(f"--out {folder}: {error.strerror}; name a folder that can be written") from None


def _again(task: Path, hole: Hole, out: Path | None) -> str:
    """The command that shows this hole once more; one for all ways of an adversary, where there is no file."""
    if out and hole.file:
        return f"blastdoor gate {task} --diff {out / hole.file} --must-improve"
    return f"blastdoor audit {task} --only {hole.adversary!r}"


def _conclude(view: RowsView, task: Path, told: AuditRecord, out: Path | None) -> None:
    holes = [it for it in told.holes if not it.accepted]
    for command in list(dict.fromkeys(_again(task, it, out) for it in holes))[:3]:
        view.say(f"again: {command}", "dim")
    if not out and any(it.file for it in holes):
        view.say("with --out DIR, each hole comes as a change that `blastdoor gate` can judge", "dim")
    view.say(f"\n{told.conclusion}", "bold green" if told.good else "bold red")
