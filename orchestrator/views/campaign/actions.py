"""Requests to the orchestrator at work: pause, inject, requeue, release, cancel. Checked here, done there."""

import sys
from pathlib import Path
from typing import Any

import click

from orchestrator.change.policy import DEFAULT_CAPS
from orchestrator.change.whole import whole_file
from orchestrator.text import printable, shown
from orchestrator.units import format_size
from orchestrator.views.campaign import asking
from orchestrator.views.campaign.asking import Asked, person, when
from orchestrator.views.campaign.diff import tree_of
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    given_settings,
    holder_of,
    json_option,
    node_argument,
    open_campaign,
    print_json,
    task_argument,
)
from orchestrator.wiring.reading import Reading
from orchestrator.wiring.reading import ask as leave_request


def ask(reading: Reading, task: Path, asked: Asked, as_json: bool) -> None:
    """Leave the request, and say in one line what will happen and when."""
    number = leave_request(task, asked.kind, asked.body, given_settings(), by=person())
    if as_json:
        record: dict[str, Any] = {"request": number, "kind": asked.kind, "body": asked.body}
        print_json(record | {"holder": holder_of(reading)})
    else:
        click.echo(f"request {number}: {asked.what} {when(reading)}")


@click.command("pause", cls=CampaignCommand)
@click.option("--off", is_flag=True, help="Continue after a pause.")
@json_option
@task_argument
def pause(task: Path, off: bool, as_json: bool) -> None:
    """Start no new attempts; running ones finish as usual. With --off, continue.

    If no process works on the campaign, `blastdoor resume` continues it, paused or not.
    """
    with open_campaign(task) as reading:
        ask(reading, task, asking.pause(reading, off=off), as_json)


@click.command("inject", cls=CampaignCommand)
@click.option(
    "--diff",
    "source",
    metavar="FILE",
    help="File with a diff, search/replace blocks or labelled whole files; - is stdin.",
)
@click.option(
    "--file",
    "plain",
    metavar="FILE",
    help="Plain file that replaces the one of the same name, or the one that --as names.",
)
@click.option("--as", "path", metavar="PATH", help="With --file: path in the workspace.")
@click.option("--on", "parent", metavar="NODE", help="Node to apply it to; defaults to the best.")
@click.option("--describe", "description", metavar="TEXT", help="Short description of the change.")
@json_option
@task_argument
def inject(
    task: Path,
    source: str | None,
    plain: str | None,
    path: str | None,
    parent: str | None,
    description: str | None,
    as_json: bool,
) -> None:
    """Add a change of your own to the tree as a node; it is run and judged like any other."""
    given = source if source is not None else plain
    if given is None or (source is not None and plain is not None):
        raise click.UsageError("give the change: either --diff FILE, or --file FILE for a plain file")
    if path is not None and plain is None:
        raise click.UsageError("--as belongs to --file FILE")
    text = _read_change(given)
    described = description if description is not None else f"by hand: {printable(Path(given).name)}"
    with open_campaign(task) as reading:
        if plain is not None:
            text = whole_file(path or _path_of(reading, plain), text)
        ask(reading, task, asking.inject(reading, text, parent, described), as_json)


@click.command("requeue", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def requeue(node: str, task: Path, as_json: bool) -> None:
    """Run the attempt of NODE again, now. It must be waiting, in quarantine, or have ended without being charged."""
    with open_campaign(task) as reading:
        ask(reading, task, asking.requeue(reading, node), as_json)


@click.command("release", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def release(node: str, task: Path, as_json: bool) -> None:
    """Release NODE from quarantine; its stalls are counted from zero again."""
    with open_campaign(task) as reading:
        ask(reading, task, asking.release(reading, node), as_json)


@click.command("cancel", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def cancel(node: str, task: Path, as_json: bool) -> None:
    """Cancel the attempt of NODE; it is not charged, but what it spent stays spent."""
    with open_campaign(task) as reading:
        ask(reading, task, asking.cancel(reading, node), as_json)


def _read_change(source: str) -> str:
    cap = DEFAULT_CAPS.text_bytes
    try:
        if source == "-":
            data = sys.stdin.buffer.read(cap + 1)
        else:
            with Path(source).open("rb") as stream:
                data = stream.read(cap + 1)
    except OSError as error:
        raise click.UsageError(f"{shown(source)} cannot be read ({error.strerror})") from None
    if len(data) > cap:
        raise click.UsageError(f"{shown(source)} has more than {format_size(cap)}, the most that a change may have")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"{shown(source)} is not UTF-8 text") from None


def _path_of(reading: Reading, file: str) -> str:
    """What a plain file is in the workspace: the one editable file, else what has its name there."""
    policy = reading.task.policy()
    tree = tree_of(reading, reading.state.nodes[reading.state.run.root])
    found = [path for path in tree if Path(path).name == Path(file).name]
    if policy.only or len(found) == 1:
        return policy.only or found[0]
    where = "is several files" if found else "is no file"
    raise click.UsageError(f"{printable(Path(file).name)} {where} of the workspace; say which with --as PATH")
