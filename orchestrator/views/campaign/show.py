"""`blastdoor show NODE`: everything that is known about a node."""

import click

from orchestrator.domain.node import run_of
from orchestrator.views.campaign.history import history_of
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    json_option,
    node_and_task,
    open_campaign,
    print_json,
    ranking_of,
    task_of,
    words_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.material import NodeMaterial
from orchestrator.views.campaign.sections.node import node_sections
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal


@click.command("show", cls=CampaignCommand)
@json_option
@words_argument
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Show everything about NODE (default: the best): proposal, verdict, trials, guards, cost, history."""
    name, task = node_and_task(words)
    with open_campaign(task, glance=True) as reading:
        node = chosen_node(reading.state, name or "best")
        run = reading.state.runs[str(run_of(node.id))]
        history = history_of(reading.ledger, node.id)
        material = NodeMaterial(reading.state, node, ranking_of(reading, run), task_of(reading, run), history)
        found = node_sections(material)
    if as_json:
        print_json(record(found))
        return
    screen = open_screen()
    screen.lines(Terminal(screen.width, screen.unicode).whole(found))
