"""`blastdoor apply NODE`: take a node's changes over into one's own files."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.domain import figures
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Run
from orchestrator.domain.state import State
from orchestrator.task import Repository
from orchestrator.text import printable
from orchestrator.views.campaign.diff import tree_of
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    node_argument,
    offered_node,
    open_campaign,
    print_json,
    task_argument,
    task_of,
)
from orchestrator.views.campaign.placing import NotPlaced, is_placed, place, touched
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.render.layout import diff_lines
from orchestrator.wiring.reading import Reading, task_folder_of


def workspace_of(reading: Reading, run: Run, task: Path) -> Path:
    """The person's own files: the workspace folder, or the working tree of the repository at its folder."""
    workspace = task_of(reading, run).workspace
    if isinstance(workspace, Repository):
        return task / workspace.repository / workspace.folder
    return task / workspace


@click.command("apply", cls=CampaignCommand)
@click.option("--to", "target", type=click.Path(path_type=Path), help="Folder to write to; defaults to the workspace.")
@click.option("--minimal", is_flag=True, help="Take what minimising left of NODE.")
@click.option("--dry-run", is_flag=True, help="Only print the diff.")
@json_option
@node_argument
@task_argument
def command(node: str, task: Path, target: Path | None, minimal: bool, dry_run: bool, as_json: bool) -> None:
    """Apply the changes of NODE (like 1.3.2, or best) to your own workspace.

    Every file that it touches must be as it was when the run began, or as in a kept node that was applied before and is
    taken out again (so `apply 1` puts all back); otherwise nothing is written.
    """
    with open_campaign(task) as reading:
        found = offered_node(reading.state, node, task, minimal=minimal)
        run = reading.state.runs[str(run_of(found.id))]
        bases = [tree_of(reading, root) for root in roots_of(reading.state, run)]
        new = tree_of(reading, found)
        folder = target or workspace_of(reading, run, task_folder_of(task))
        if dry_run:
            _preview(difference(bases[0], new), list(touched(bases[0], new)), as_json)
            return
        written = _placed(folder, bases, new, partial(_applied_before, reading, run, folder, bases[0]))
    if as_json:
        members = {"members": [it.node for it in run.pool]} if run.pool else {}
        print_json({"node": found.id, "folder": str(folder), "written": written, **members})
    elif written:
        names = ", ".join(map(printable, written))
        click.echo(f"{found.id} applied to {folder}: {figures.plural(len(written), 'file')} ({names})")
        if run.pool:
            names = ", ".join(it.node for it in run.pool)
            does = f"calls {names}" if run.combine and run.combine.serve else f"combines what {names} leave"
            click.echo(f"it {does}; apply them elsewhere with --to")
    elif touched(bases[0], new):
        click.echo(f"{folder} has the files of {found.id} already; nothing was written")
    else:
        click.echo(f"{found.id} changes no file; nothing was written")


def roots_of(state: State, run: Run) -> list[Node]:
    """The root of a run; where the run began with a node of an earlier one, that one's roots come before it."""
    earlier = [] if run.start is None else roots_of(state, state.runs[str(run_of(run.start))])
    return [*earlier, state.nodes[run.root]]


def _placed(folder: Path, bases: Sequence[Tree], new: Tree, applied_before: Callable[[], Tree | None]) -> list[str]:
    """From the oldest base that the folder is still at: a later one would leave out what was changed before it."""
    refusals: list[NotPlaced] = []
    try:
        for old in bases if touched(bases[0], new) else ():
            try:
                return place(folder, old, new)
            except NotPlaced as refusal:
                refusals.append(refusal)
        if applied := applied_before():
            return place(folder, applied, new)
    except NotPlaced as refusal:
        refusals.append(refusal)
    if refusals:
        raise click.UsageError(str(refusals[-1]))
    return []


def _applied_before(reading: Reading, run: Run, folder: Path, base: Tree) -> Tree | None:
    """The kept node that the folder holds: of several the one that changes most, since the others are part of it."""
    kept = (reading.state.nodes[it.id] for it in reading.state.node_lines() if it.kept and run_of(it.id) == run.number)
    trees = (tree_of(reading, node) for node in kept if node.commit)
    held = [tree for tree in trees if is_placed(folder, base, tree)]
    return max(held, key=lambda tree: len(touched(base, tree)), default=None)


def _preview(text: str, paths: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"written": [], "would_write": paths, "diff": text})
        return
    open_screen().lines(diff_lines(text))
