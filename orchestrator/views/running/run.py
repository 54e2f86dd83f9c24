"""`blastdoor run`: a campaign from its first node, or a new run with other criteria in one that is there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from orchestrator.run_options import Scope
from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import json_option, print_json, task_argument
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, notify_option, run_flags, say, site_options
from orchestrator.views.running.plan import show_plan
from orchestrator.views.running.session import INTERRUPTED, Wanted, work
from orchestrator.views.running.summary import show_summary, summary_record
from orchestrator.wiring.beginning import How
from orchestrator.wiring.combining import combines_next
from orchestrator.wiring.resuming import NoRoom


@click.command("run")
@run_flags(Scope.RUN, Scope.CAP)
@click.option(
    "--new-run", is_flag=True, help="Begin the next run (2, 3, …) in the same campaign, with changed criteria."
)
@click.option("--from", "start", metavar="NODE", help="With --new-run: start from this node's files.")
@click.option(
    "--lower-tier", is_flag=True, help="Let a verdict of a lower integrity tier replace one of a better tier."
)
@site_options()
@click.option("--dry-run", is_flag=True, help="Show what would run and what it could cost; run nothing.")
@notify_option
@json_option
@task_argument
@click.pass_obj
def command(settings: Settings, /, task: Path, **given: Any) -> int:
    """Search for a better candidate for TASK.

    Press Ctrl-C once to end it cleanly, twice to end it at once; nothing is lost either way, and `blastdoor resume`
    continues it.

    With --combine, --attempts, --patience and how to search are those of this stage: the combination stage has its own
    in the task. Caps, place, width, seed, --ask and --minimise hold for both.

    Exit code 0 when a stop rule ended it, 1 when too many attempts in a row ended free, 2 when the task or the proposer
    is at fault, 3 when the engine fails, 130 when a signal ended it.
    """
    if given["start"] and not given["new_run"]:
        raise click.UsageError("--from needs --new-run")
    how = How.NEW_RUN if given["new_run"] else How.START
    if given["dry_run"]:
        return show_plan(task, how, flags_of(given), settings, given["as_json"])
    more = {"start": given["start"], "lower_tier": given["lower_tier"], "quiet": given["as_json"]}
    wanted = Wanted(task, how, flags_of(given), settings, **more)
    return finish(wanted, given["as_json"])


def finish(wanted: Wanted, as_json: bool) -> int:
    """Work, then say what came of it; then the same for its combinations, where that was asked for."""
    finished = run_in_loop(work(wanted))
    if finished.reason != INTERRUPTED and not finished.gave_up and combines_next(wanted.task, wanted.settings):
        if not as_json:
            show_summary(wanted.task, finished.reason)
        wanted = replace(wanted, how=How.COMBINE, flags=wanted.flags.of_a_stage(), start=None)
        try:
            finished = run_in_loop(work(wanted))
        except NoRoom as error:
            say(str(error))
            if as_json:
                print_json(summary_record(wanted.task, finished.reason))
            return Exit.OK
    if as_json:
        print_json(summary_record(wanted.task, finished.reason))
    else:
        show_summary(wanted.task, finished.reason)
    if finished.gave_up:
        return Exit.NOT_GOOD
    return Exit.INTERRUPTED if finished.reason == INTERRUPTED else Exit.OK
