"""`blastdoor diff NODE`: what a node changed, coloured like git does it, escaped."""

import click
from rich.text import Text

from orchestrator.change import Tree, difference
from orchestrator.domain.records import Node
from orchestrator.text import printable_lines
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
from orchestrator.wiring import Reading

_HEADER = "bold"


def coloured(text: str) -> list[Text]:
    """One line each. Inside a hunk the first character decides; a removed `-- x` is no header."""
    lines = []
    left = (0, 0)
    for line in printable_lines(text):
        if line.startswith("@@"):
            left = _sizes(line)
            lines.append(Text(line, "cyan"))
        elif any(left) and line[:1] in ("+", "-", " ", ""):
            left = (left[0] - (line[:1] != "+"), left[1] - (line[:1] != "-"))
            lines.append(Text(line, {"+": "green", "-": "red"}.get(line[:1], "")))
        else:
            lines.append(Text(line, "bright_black" if line.startswith("\\") else _HEADER))
    return lines


def _sizes(header: str) -> tuple[int, int]:
    """Old and new lines of a hunk, from `@@ -1,3 +1,4 @@`; the diff is our own canonical one."""
    ranges = header.split(" ")[1:3]
    counts = [int(part.partition(",")[2]) if part.partition(",")[2].isdigit() else 1 for part in ranges]
    return (counts[0], counts[1]) if len(counts) == 2 else (0, 0)


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


@click.command("diff", cls=CampaignCommand)
@click.option("--from", "base", metavar="NODE", help="Node to compare with; defaults to the parent.")
@json_option
@words_argument
def command(words: tuple[str, ...], base: str | None, as_json: bool) -> None:
    """Show what NODE (default: the best) changed compared with its parent, or with another node."""
    node, task = node_and_task(words)
    with open_campaign(task) as reading:
        found = chosen_node(reading.state, node or "best")
        other = chosen_node(reading.state, base) if base else None
        text = diff_of(reading, found, other)
    if as_json:
        print_json({"node": found.id, "from": other.id if other else found.parent, "diff": text})
        return
    screen = open_screen()
    for line in coloured(text):
        screen.line(line)
    if not text:
        click.echo("no difference", err=True)
