"""`blastdoor resume`: go on with a campaign that was stopped, or that died."""

from pathlib import Path
from typing import Any

import click

from orchestrator.loop.requests import LONGEST_NAME
from orchestrator.run_options import Scope
from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import json_option, task_argument
from orchestrator.views.flags import flags_of, notify_option, run_flags
from orchestrator.views.running.run import finish
from orchestrator.views.running.session import Wanted
from orchestrator.wiring.beginning import How


@click.command("resume")
@run_flags(Scope.CAP, Scope.SITE)
@notify_option
@click.option("--by", default="", hidden=True)  # who asked for it at the page
@json_option
@task_argument
@click.pass_obj
def command(settings: Settings, /, task: Path, **given: Any) -> int:
    """Continue the campaign of TASK. A cap that you give replaces the old one."""
    wanted = Wanted(task, How.RESUME, flags_of(given), settings, quiet=given["as_json"], by=given["by"][:LONGEST_NAME])
    return finish(wanted, given["as_json"])
