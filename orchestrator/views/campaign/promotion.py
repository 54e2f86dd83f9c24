"""`blastdoor accept` and `blastdoor decline`: a person's word on a candidate that waits for it, and who waits."""

from pathlib import Path

import click

from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.loop.requests import LONGEST_WHY
from orchestrator.text import printable
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.actions import ask
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    json_option,
    node_argument,
    open_campaign,
    task_argument,
    typed,
)


def who_waits(state: State) -> list[Node]:
    """Those of the present run that a person is asked about, in the order of asking."""
    nodes = (state.nodes[name] for name in state.unfinished)
    found = [node for node in nodes if node.waits_for_person and run_of(node.id) == state.campaign.run]
    return sorted(found, key=lambda node: node.promotion_since)


def waiting_line(state: State, node: Node, metric: Metric, task: Path) -> str:
    """Its score against the best, and what to type."""
    champion = state.champion()
    mine, best = (headline(state, it) if it else None for it in (node, champion))
    values = [f"{it.mark}{figures.score(it.metrics.get(metric.name))}" if it else "none" for it in (mine, best)]
    scored = f" {printable(metric.name)}={values[0]} (best {values[1]})" if mine else ""
    accepted, shown = typed(task, "accept", node.id), typed(task, "diff", node.id)
    return f"{node.id}{scored} waits for your word: {accepted}, or decline; {shown}"


def answered(node: Node) -> str:
    """What a person said of a node; empty where nobody was asked."""
    if node.promotion is None:
        return "waits for an answer" if node.waits_for_person else ""
    why = f": {node.promotion_why}" if node.promotion_why else ""
    return f"{'accepted' if node.promotion else 'declined'}{why}"


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
