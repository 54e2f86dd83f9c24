"""`blastdoor credit`: what each choice of the search was worth, by both credits."""

from pathlib import Path

import click

from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_run,
    json_option,
    material_of,
    open_campaign,
    print_json,
    run_option,
    task_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.credit import credit
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal


@click.command("credit", cls=CampaignCommand)
@run_option
@json_option
@task_argument
def command(task: Path, number: int | None, as_json: bool) -> None:
    """Show which choices of the search paid: operators, models, step sizes, with what they cost and how likely each is
    now. Lift credits an attempt alone, lineage its ancestors, too.
    """
    with open_campaign(task) as reading:
        found = [credit(material_of(reading, chosen_run(reading.state, number)))]
    if as_json:
        print_json(record(found))
        return
    screen = open_screen()
    screen.lines(Terminal(screen.width, screen.unicode).whole(found))
