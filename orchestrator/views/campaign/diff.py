"""`blastdoor diff NODE`: what a node changed, coloured like git does it, escaped."""

import click

from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.domain.records import Node, Run
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    json_option,
    node_and_task,
    open_campaign,
    print_json,
    words_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.render.layout import diff_lines
from orchestrator.wiring.reading import Reading


def tree_of(reading: Reading, node: Node) -> Tree:
    if node.commit is None:
        raise click.UsageError(f"{node.id} has no candidate: nothing of it was promoted")
    return reading.candidates.read(node.commit)


def diff_of(reading: Reading, node: Node, base: Node | None = None) -> str:
    """The stored diff of a node against its parent, or the difference to any other node."""
    if base is not None:
        return difference(tree_of(reading, base), tree_of(reading, node))
    if node.diff is not None:
        return reading.artifacts.get(node.diff).decode("utf-8", "backslashreplace")
    if node.parent is None:
        return ""
    return difference(tree_of(reading, reading.state.nodes[node.parent]), tree_of(reading, node))


def winners_diff(reading: Reading, run: Run) -> str:
    """Of the best of a run against its baseline; empty where one of them has no candidate, or they are the same."""
    winner, root = reading.state.champion(run), reading.state.nodes.get(run.root)
    changed = winner and root and winner.id != root.id and winner.commit and root.commit
    return diff_of(reading, winner, root) if changed and winner else ""


@click.command("diff", cls=CampaignCommand)
@click.option("--from", "base", metavar="NODE", help="Node to compare with; defaults to the parent.")
@json_option
@words_argument
def command(words: tuple[str, ...], base: str | None, as_json: bool) -> None:
    """Show what NODE (default: the best) changed compared with its parent, or with another node."""
    node, task = node_and_task(words)
    with open_campaign(task, glance=True) as reading:
        found = chosen_node(reading.state, node or "best")
        other = chosen_node(reading.state, base) if base else None
        text = diff_of(reading, found, other)
    if as_json:
        print_json({"node": found.id, "from": other.id if other else found.parent, "diff": text})
        return
    open_screen().lines(diff_lines(text))
    if not text:
        click.echo("no difference", err=True)
