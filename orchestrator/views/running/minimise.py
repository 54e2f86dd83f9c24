"""`blastdoor minimise`: take a winner apart, and leave out what does nothing for its score."""

from pathlib import Path

import click

from orchestrator.domain.minimal import minimal_of
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    holder_of,
    json_option,
    material_of,
    node_and_task,
    open_campaign,
    print_json,
    words_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.evidence import audited, other_judge
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.campaign.sections.minimal import parts_of
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import notify_option
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal
from orchestrator.views.running.session import INTERRUPTED, Wanted, work
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import Reading


@click.command("minimise", cls=CampaignCommand)
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    help="Maximum number of trials that minimising may take in this run; defaults to budget.minimisation, or 100.",
)
@notify_option
@json_option
@words_argument
@click.pass_obj
def command(settings: Settings, /, words: tuple[str, ...], trials: int | None, as_json: bool) -> int:
    """Find the smallest part of what NODE (default: the best) changed that keeps its score.

    Hunks are left out first, then statements, lines and tokens, then parameters go back to the baseline's values. Each
    step is a trial, paid for from an account of its own. What is left becomes a node below NODE, once it has passed
    what NODE had to pass; `blastdoor apply` offers it. One that was interrupted goes on where it was.

    Exit code 0 when it is done, also where nothing can be left out; 1 when it could not be finished; 130 when a signal
    ended it.
    """
    name, task = node_and_task(words)
    with open_campaign(task) as reading:
        winner = _checked(reading, chosen_node(reading.state, name or "best"), task)
        done = minimal_of(reading.state, winner)
        doubts = _doubts(reading)
    if done is None:
        if doubts:
            click.echo(f"warning: {doubts}: what keeps the score may be a hole alone; read it", err=True)
        reason = run_in_loop(work(_wanted(task, trials, settings, as_json), minimises=winner.id)).reason
        if reason == INTERRUPTED:
            return Exit.INTERRUPTED
        click.echo(reason, err=True)
    return _show(task, winner, as_json)


def _doubts(reading: Reading) -> str:
    """What the last audit said of this very judge, where it is not that it holds."""
    it = material_of(reading)
    if it.audit is None or it.audit.good or other_judge(it, it.audit):
        return ""
    return it.audit.conclusion


def _wanted(task: Path, trials: int | None, settings: Settings, quiet: bool) -> Wanted:
    return Wanted(task, How.RESUME, Flags(minimisation=trials), settings, quiet=quiet)


def _checked(reading: Reading, node: Node, task: Path) -> Node:
    """Raises click's UsageError for a node that cannot be taken apart; nothing was done then."""
    state = reading.state
    if holder := holder_of(reading):
        raise click.UsageError(f"{holder} works on this campaign; wait until it ends, or stop it")
    if node.role is Role.MINIMISED and node.parent:
        node = state.nodes[node.parent]
    if run_of(node.id) != state.campaign.run:
        now = state.campaign.run
        advice = typed(task, "run", "--new-run", "--from", node.id)
        raise click.UsageError(f"{node.id} belongs to run {run_of(node.id)}, and run {now} is worked on; see {advice}")
    if node.parent is None:
        raise click.UsageError(f"{node.id} is the baseline: it has no change to take apart")
    if node.phase is not Phase.ENDED or node.verdict is None or not node.verdict.valid or not node.commit:
        raise click.UsageError(f"{node.id} has no valid verdict, so there is no score to keep")
    return node


def _show(task: Path, winner: Node, as_json: bool) -> int:
    with open_campaign(task) as reading:
        node = reading.state.nodes[winner.id]
        it = material_of(reading)
        sections = [parts_of(reading.state, node, it.metrics), *([audited(it)] if it.audit else [])]
        is_over = minimal_of(reading.state, node) is not None
    if as_json:
        print_json(record(sections))
    else:
        screen = open_screen()
        screen.lines(Terminal(screen.width, screen.unicode).whole(sections))
    return Exit.OK if is_over else Exit.NOT_GOOD
