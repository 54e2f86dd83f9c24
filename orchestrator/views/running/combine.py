"""`blastdoor combine`: freeze the best candidates of a campaign, and search for a combination of what they leave."""

from pathlib import Path
from typing import Any

import click

from orchestrator.run_options import Scope
from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import json_option, task_argument
from orchestrator.views.flags import flags_of, notify_option, run_flags, site_options
from orchestrator.views.running.run import finish
from orchestrator.views.running.session import Wanted
from orchestrator.wiring.beginning import How


@click.command("combine")
@run_flags(Scope.RUN, Scope.CAP, but=("combine",))
@site_options()
@notify_option
@json_option
@task_argument
@click.pass_obj
def command(settings: Settings, /, task: Path, **given: Any) -> int:
    """Combine the best candidates of TASK in a stage of its own.

    The stage is the next run of the campaign. Its pool is chosen from the last run, as [combine] of the task says, and
    never changes; `blastdoor resume` continues the stage. Attempts are those of budget.combination, or --attempts.
    Caps, place, width and seed that the last run was begun with hold here, too, unless a flag says otherwise.

    Exit codes are those of `blastdoor run`.
    """
    wanted = Wanted(task, How.COMBINE, flags_of(given), settings, quiet=given["as_json"])
    return finish(wanted, given["as_json"])
