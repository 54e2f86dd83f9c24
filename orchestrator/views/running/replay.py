"""`blastdoor replay`: does a score stand?"""

from pathlib import Path
from typing import Any

import click

from orchestrator.domain import figures
from orchestrator.domain.records import Node
from orchestrator.examine.replay import Replay, replay
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.text import printable
from orchestrator.views.campaign.opening import json_option, node_argument, print_json, task_argument
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.views.running.parts import open_place


@click.command("replay")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=1e-9,
    help="Relative difference that still counts as the same score.",
)
@site_options()
@json_option
@node_argument
@task_argument
@click.pass_obj
def command(settings: Settings, /, node: str, task: Path, tolerance: float, as_json: bool, **given: Any) -> int:
    """Run NODE's candidate once more and say whether its verdict stands. Nothing is recorded.

    A strict score stands when it is the same again, and the candidate would be kept, or not, as before. A noisy score
    is never quite the same: it stands when it is no worse than the worst of the node's own repeats.

    Exit code 0 when it stands, 1 when it does not.
    """
    found, again = run_in_loop(_replay(settings, task, node, tolerance, flags_of(given)))
    if as_json:
        verdict = again.verdict.model_dump(mode="json") if again.verdict else None
        print_json({"node": found.id, "stands": again.stands, "kept": again.kept, "why": again.why, "verdict": verdict})
    else:
        word = "stands" if again.stands else "does not stand"
        scores = figures.metrics(again.verdict.metrics) if again.verdict else "no score"
        click.echo(f"{found.id} {word}: {printable(again.why)} ({scores})")
    return Exit.OK if again.stands else Exit.NOT_GOOD


async def _replay(settings: Settings, task: Path, name: str, tolerance: float, flags: Flags) -> tuple[Node, Replay]:
    async with open_place(settings, task, name, flags) as place:
        node = place.node
        return node, await replay(place.parts, place.reading.state, node, place.tree, tolerance)
