"""`blastdoor accept` and `blastdoor decline`: a person's word on a candidate that waits for it, and who waits."""

from pathlib import Path

import click

from orchestrator.views.campaign import asking
from orchestrator.views.campaign.actions import ask
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    node_argument,
    open_campaign,
    task_argument,
)


@click.command("accept", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def accept(node: str, task: Path, as_json: bool) -> None:
    """Accept NODE, a candidate awaiting approval: it becomes the best unless a better one came in the meantime."""
    _answer(task, node, True, "", as_json)


@click.command("decline", cls=CampaignCommand)
@click.option("--why", default="", metavar="TEXT", help="Reason, recorded with the node.")
@json_option
@node_argument
@task_argument
def decline(node: str, task: Path, why: str, as_json: bool) -> None:
    """Reject NODE, a candidate awaiting approval: it does not become the best; its score stays on record."""
    _answer(task, node, False, why, as_json)


def _answer(task: Path, name: str, accepted: bool, why: str, as_json: bool) -> None:
    with open_campaign(task) as reading:
        ask(reading, task, asking.answer(reading, name, accepted=accepted, why=why), as_json)
