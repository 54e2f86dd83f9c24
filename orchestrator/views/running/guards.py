"""`blastdoor guards`: the guards that a node inherits, checked on their own, or a new one hung on it."""

import shlex
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from orchestrator.domain.node import path_to
from orchestrator.domain.records import Guard
from orchestrator.loop.guards import Checked, guard_record, run_guard
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import GuardSpec, Task
from orchestrator.text import printable, printable_lines
from orchestrator.views.campaign.asking import person
from orchestrator.views.campaign.opening import (
    chosen_node,
    given_settings,
    json_option,
    node_argument,
    present_node,
    print_json,
    task_argument,
)
from orchestrator.views.campaign.opening import open_campaign as read
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.views.running.parts import open_place
from orchestrator.wiring.reading import Reading
from orchestrator.wiring.reading import ask as leave_request

_LOG_LINES = 20


@click.command("guards")
@click.option("--check", "is_check", is_flag=True, help="Run the guards now, each in its own chamber.")
@click.option("--add", metavar="NAME", help="Add a guard to NODE; all nodes below inherit it.")
@click.option("--command", "line", metavar="LINE", help="With --add: shell line that must exit with 0.")
@click.option(
    "--beside-judge", is_flag=True, help="With --add: run it in the judge's chamber, on the output bytes only."
)
@site_options()
@json_option
@node_argument
@task_argument
@click.pass_obj
def command(settings: Settings, /, node: str, task: Path, **given: Any) -> int:
    """Show the guards that NODE inherits, from the root down. With --check, exit code 1 when one does not pass."""
    if given["add"] is not None:
        return _add(task, node, str(given["add"]), given["line"], bool(given["beside_judge"]))
    if given["line"] is not None or given["beside_judge"]:
        raise click.UsageError("--command and --beside-judge belong to --add NAME")
    if not given["is_check"]:
        return _list(task, node, bool(given["as_json"]))
    checked = run_in_loop(_check(settings, task, node, flags_of(given)))
    return _show(node, checked, bool(given["as_json"]))


def _add(task: Path, name: str, guard: str, line: str | None, beside_judge: bool) -> int:
    if line is None:
        raise click.UsageError("--add needs --command, the line that must exit with 0")
    with read(task) as reading:
        node = present_node(reading, name)
        record = _new_guard(reading.task, guard, line, beside_judge)
        _refuse_second(reading, node.id, record.name)
        holder = reading.holder
    leave_request(
        task, "guard", {"node": node.id, "guard": record.model_dump(mode="json")}, given_settings(), by=person()
    )
    when = "within a second" if holder else "from the next blastdoor resume on; --check runs it now"
    click.echo(f"{record.name} holds for {node.id} and all below it, {when}")
    return Exit.OK


def _new_guard(task: Task, name: str, line: str, beside_judge: bool) -> Guard:
    """As one of the task file: the same names, a line for the shell, and the limits of the place where it runs."""
    place, limits = ("judge", task.judge.limits) if beside_judge else ("chamber", task.limits)
    try:
        return guard_record(GuardSpec(name=name, command=line, limits=limits, **{"in": place}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        flag = {"name": "--add", "command": "--command"}[str(first["loc"][0])]
        raise click.UsageError(printable(f"{flag}: {first['msg'].removeprefix('Value error, ')}")) from None


def _refuse_second(reading: Reading, node: str, name: str) -> None:
    """A second one of a name would replace the first, here or further down, where nobody sees it."""
    state = reading.state
    taken = [place for place in state.nodes if (node in path_to(place) or place in path_to(node))]
    if found := [place for place in taken if name in (guard.name for guard in state.nodes[place].guards)]:
        raise click.UsageError(f"{found[0]} has a guard {name} already; choose another name")
    if name in (guard.name for _, guard in _waiting(reading)):
        raise click.UsageError(f"a guard {name} waits for the next blastdoor resume already; choose another name")


def _waiting(reading: Reading) -> list[tuple[str, Guard]]:
    """Guards that were asked for and that nobody took yet, each with its node."""
    return [(str(body["node"]), Guard.model_validate(body["guard"])) for _, body in reading.waiting("guard")]


def _guards_of(reading: Reading, node: str) -> list[Guard]:
    """Those that hold for a node, and those that will once the campaign goes on."""
    return reading.state.guards_of(node) + [guard for place, guard in _waiting(reading) if place in path_to(node)]


def _list(task: Path, name: str, as_json: bool) -> int:
    with read(task) as reading:
        node = chosen_node(reading.state, name)
        held = len(reading.state.guards_of(node.id))
        guards = _guards_of(reading, node.id)
    if as_json:
        waits = [{"waits": at >= held} for at in range(len(guards))]
        print_json([guard.model_dump(mode="json") | it for guard, it in zip(guards, waits, strict=True)])
    elif not guards:
        click.echo(f"{node.id} has no guards")
    for at, guard in enumerate(guards if not as_json else ()):
        later = "; from the next blastdoor resume on" if at >= held else ""
        click.echo(f"{printable(guard.name)} ({guard.place}{later}): {printable(_line_of(guard))}")
    return Exit.OK


def _line_of(guard: Guard) -> str:
    """As a person wrote it."""
    shell, words = guard.command[:2] == ("sh", "-c"), guard.command
    return words[2] if shell and len(words) == 3 else shlex.join(words)


async def _check(settings: Settings, task: Path, name: str, flags: Flags) -> dict[str, Checked]:
    async with open_place(settings, task, name, flags) as place:
        state, node = place.reading.state, place.node
        guards = _guards_of(place.reading, node.id)
        trial = state.trials[node.submitted] if node.submitted else None
        if trial and trial.let_go and any(guard.place == "judge" for guard in guards):
            raise click.UsageError(
                f"the outputs of {node.id} were let go, to keep within --artifacts, and a guard beside the judge looks "
                "at them; bring its change in again with blastdoor inject"
            )
        outputs = trial.outputs if trial and not trial.let_go else None
        harvested = place.reading.artifacts.get_files(outputs) if outputs else {}
        return {guard.name: await run_guard(place.parts, guard, place.tree, harvested) for guard in guards}


def _show(node: str, checked: dict[str, Checked], as_json: bool) -> int:
    if as_json:
        print_json({name: {"passed": it.passed, "reason": it.reason} for name, it in checked.items()})
    elif not checked:
        click.echo(f"{printable(node)} has no guards, so there is nothing to check")
    for name, result in checked.items() if not as_json else ():
        click.echo(f"{printable(name)}: {'passes' if result.passed else f'does not pass ({printable(result.reason)})'}")
        if not result.passed:
            for line in list(printable_lines(result.log))[-_LOG_LINES:]:
                click.echo(f"    {line}")
    return Exit.OK if all(result.passed for result in checked.values()) else Exit.NOT_GOOD
