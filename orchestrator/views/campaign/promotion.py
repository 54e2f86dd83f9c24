"""`blastdoor accept` and `blastdoor decline`: a person's word on a candidate that waits for it, and who waits."""

from pathlib import Path

import click

from orchestrator.loop.requests import LONGEST_WHY
from orchestrator.views.campaign.actions import ask
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    json_option,
    node_argument,
    open_campaign,
    task_argument,
)
from orchestrator.views.campaign.sections.work import who_waits


@click.command("accept", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def accept(node: str, task: Path, as_json: bool) -> None:
    """Accept NODE, a candidate awaiting approval: it becomes the best unless a better one came in the meantime."""
    _answer(task, node, "accept", "", as_json)


@click.command("decline", cls=CampaignCommand)
@click.option("--why", default="", metavar="TEXT", help="Reason, recorded with the node.")
@json_option
@node_argument
@task_argument
def decline(node: str, task: Path, why: str, as_json: bool) -> None:
    """Reject NODE, a candidate awaiting approval: it does not become the best; its score stays on record."""
    if len(why) > LONGEST_WHY:
        raise click.UsageError(f"--why has at most {LONGEST_WHY} characters")
    _answer(task, node, "decline", why.strip(), as_json)


def _answer(task: Path, name: str, kind: str, why: str, as_json: bool) -> None:
    with open_campaign(task) as reading:
        node = chosen_node(reading.state, name)
        waiting = [it.id for it in who_waits(reading.state)]
        if node.id not in waiting:
            others = f"; {', '.join(waiting)} does" if waiting else "; nothing does"
            raise click.UsageError(f"{node.id} does not wait for a person's word{others}")
        what = f"{node.id} is {'accepted' if kind == 'accept' else 'declined'}"
        ask(reading, task, kind, {"node": node.id, "why": why}, what, as_json)
