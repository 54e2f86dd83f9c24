"""`blastdoor guards`: the guards that a node inherits, checked on their own, or a new one hung on it."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

import click

from orchestrator import wiring
from orchestrator.domain.records import Guard
from orchestrator.loop.guards import Checked, run_guard
from orchestrator.settings import Settings
from orchestrator.text import printable, printable_lines
from orchestrator.views.campaign.opening import (
    chosen_node,
    given_settings,
    json_option,
    node_argument,
    print_json,
    task_argument,
)
from orchestrator.views.campaign.opening import open_campaign as read
from orchestrator.views.exits import Exit
from orchestrator.views.running.parts import open_place
from orchestrator.views.where import flags_of, site_options
from orchestrator.wiring import Flags

_LOG_LINES = 20


@click.command("guards")
@click.option("--check", "is_check", is_flag=True, help="Run them now, each in a chamber of its own.")
@click.option("--add", metavar="NAME", help="Hang a new guard on NODE; all nodes below inherit it.")
@click.option("--command", "line", metavar="LINE", help="With --add: what must exit with 0.")
@click.option("--beside-judge", is_flag=True, help="With --add: run it in the judge's chamber, on bytes only.")
@site_options()
@json_option
@node_argument
@task_argument
@click.pass_obj
def command(settings: Settings, /, node: str, task: Path, **given: Any) -> int:
    """Show the guards that NODE inherits, from the root on. With --check, exit code 1 when one does not pass."""
    if given["add"]:
        return _add(task, node, str(given["add"]), str(given["line"] or ""), bool(given["beside_judge"]))
    if not given["is_check"]:
        return _list(task, node, bool(given["as_json"]))
    checked = asyncio.run(_check(settings, task, node, flags_of(given)))
    return _show(checked, bool(given["as_json"]))


def _add(task: Path, name: str, guard: str, line: str, beside_judge: bool) -> int:
    words = shlex.split(line)
    if not words:
        raise click.UsageError("--add needs --command, the line that must exit with 0")
    with read(task) as reading:
        node = chosen_node(reading.state, name)
        holder = reading.holder
    record = Guard(name=guard, command=tuple(words), place="judge" if beside_judge else "chamber")
    wiring.ask(task, "guard", {"node": node.id, "guard": record.model_dump(mode="json")}, given_settings())
    when = "within a second" if holder else "at the next blastdoor resume"
    click.echo(f"{printable(guard)} holds for {node.id} and all below it, {when}")
    return Exit.OK


def _list(task: Path, name: str, as_json: bool) -> int:
    with read(task) as reading:
        node = chosen_node(reading.state, name)
        guards = reading.state.guards_of(node.id)
    if as_json:
        print_json([guard.model_dump(mode="json") for guard in guards])
    elif not guards:
        click.echo(f"{node.id} has no guards")
    for guard in guards if not as_json else ():
        click.echo(f"{printable(guard.name)} ({guard.place}): {printable(shlex.join(guard.command))}")
    return Exit.OK


async def _check(settings: Settings, task: Path, name: str, flags: Flags) -> dict[str, Checked]:
    async with open_place(settings, task, name, flags) as place:
        state, node = place.reading.state, place.node
        trial = state.trials[node.submitted] if node.submitted else None
        if trial and trial.let_go and any(guard.place == "judge" for guard in state.guards_of(node.id)):
            raise click.UsageError(
                f"the outputs of {node.id} were let go, to keep within --artifacts, and a guard beside the judge looks "
                "at them; bring its change in again with blastdoor inject"
            )
        outputs = trial.outputs if trial and not trial.let_go else None
        harvested = place.reading.artifacts.get_files(outputs) if outputs else {}
        return {
            guard.name: await run_guard(place.parts, guard, place.tree, harvested) for guard in state.guards_of(node.id)
        }


def _show(checked: dict[str, Checked], as_json: bool) -> int:
    if as_json:
        print_json({name: {"passed": it.passed, "reason": it.reason} for name, it in checked.items()})
    for name, result in checked.items() if not as_json else ():
        click.echo(f"{printable(name)}: {'passes' if result.passed else f'does not pass ({printable(result.reason)})'}")
        if not result.passed:
            for line in list(printable_lines(result.log))[-_LOG_LINES:]:
                click.echo(f"    {line}")
    return Exit.OK if all(result.passed for result in checked.values()) else Exit.NOT_GOOD
