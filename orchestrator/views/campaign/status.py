"""`blastdoor status`: where a campaign stands, on one screen."""

from pathlib import Path

import click

from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    material_of,
    open_campaign,
    print_json,
    task_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal


@click.command("status", cls=CampaignCommand)
@json_option
@task_argument
def command(task: Path, as_json: bool) -> None:
    """Show where a campaign stands: the best node, what is open, what was spent, and which process works on it."""
    with open_campaign(task, glance=True) as reading:
        found = sections(material_of(reading), Place.STATUS)
        control = reading.state.run.control
    if as_json:
        print_json(record(found) | ({} if control else {"control": None}))
        return
    screen = open_screen()
    screen.lines(Terminal(screen.width, screen.unicode).digest(found))
