"""Requests to the orchestrator at work: pause, inject, requeue, release, cancel. Checked here, done there.

A request lies in the ledger's inbox until somebody takes it: within a second where an orchestrator works on the
campaign, else when `blastdoor resume` goes on.
"""

import sys
from pathlib import Path
from typing import Any

import click

from orchestrator.change import Refusal
from orchestrator.change.applying import apply_text
from orchestrator.change.forms import parse
from orchestrator.change.policy import DEFAULT_CAPS
from orchestrator.change.refusal import Reason
from orchestrator.change.whole import whole_file
from orchestrator.domain.records import Node, Phase
from orchestrator.text import printable
from orchestrator.views.campaign.diff import tree_of
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    given_settings,
    holder_of,
    json_option,
    node_argument,
    open_campaign,
    present_node,
    print_json,
    task_argument,
)
from orchestrator.wiring.reading import Reading
from orchestrator.wiring.reading import ask as leave_request

_DESCRIPTION = 500


def ask(reading: Reading, task: Path, kind: str, body: dict[str, Any], what: str, as_json: bool) -> None:
    """Leave the request, and say in one line what will happen and when."""
    number = leave_request(task, kind, body, given_settings())
    if as_json:
        print_json({"request": number, "kind": kind, "body": body, "holder": holder_of(reading)})
        return
    holder = holder_of(reading)
    when = (
        f"within a second; {holder} works on it" if holder else "at the next blastdoor resume; nobody works on it now"
    )
    click.echo(f"request {number}: {what} {when}")


@click.command("pause", cls=CampaignCommand)
@click.option("--off", is_flag=True, help="Continue after a pause.")
@json_option
@task_argument
def pause(task: Path, off: bool, as_json: bool) -> None:
    """Start no new attempts; running ones finish as usual. With --off, continue.

    If no process works on the campaign, `blastdoor resume` continues it, paused or not.
    """
    with open_campaign(task) as reading:
        if not reading.holder:
            raise click.UsageError("nobody works on it, so there is nothing to pause; blastdoor resume goes on")
        what = "it goes on" if off else "no new attempt is opened, the open ones end as usual,"
        ask(reading, task, "pause", {"paused": not off}, what, as_json)


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
    described = (description if description is not None else f"by hand: {printable(Path(given).name)}").strip()
    if not 1 <= len(described) <= _DESCRIPTION:
        raise click.UsageError(f"--describe needs 1 to {_DESCRIPTION} characters")
    with open_campaign(task) as reading:
        node = present_node(reading, parent) if parent else None
        if plain is not None:
            text = whole_file(path or _path_of(reading, plain), text)
        _check_change(reading, node, text)
        body = {"text": text, "on": node.id if node else None, "description": described}
        where = f"on {node.id}" if node else "on the best node of then"
        ask(reading, task, "inject", body, f"the change becomes a node {where},", as_json)


@click.command("requeue", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def requeue(node: str, task: Path, as_json: bool) -> None:
    """Run the attempt of NODE again, now. It must be waiting, in quarantine, or have ended without being charged."""
    with open_campaign(task) as reading:
        found = present_node(reading, node)
        _require_free(found)
        ask(reading, task, "requeue", {"node": found.id}, f"{found.id} ({_state(found)}) is run again", as_json)


@click.command("release", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def release(node: str, task: Path, as_json: bool) -> None:
    """Release NODE from quarantine; its stalls are counted from zero again."""
    with open_campaign(task) as reading:
        found = present_node(reading, node)
        if found.phase is not Phase.QUARANTINED:
            raise click.UsageError(f"{found.id} is not in quarantine; it is {_state(found)}")
        ask(reading, task, "release", {"node": found.id}, f"{found.id} leaves quarantine and is queued", as_json)


@click.command("cancel", cls=CampaignCommand)
@json_option
@node_argument
@task_argument
def cancel(node: str, task: Path, as_json: bool) -> None:
    """Cancel the attempt of NODE; it is not charged, but what it spent stays spent."""
    with open_campaign(task) as reading:
        found = present_node(reading, node)
        if found.phase is Phase.ENDED:
            raise click.UsageError(f"{found.id} has ended already: {found.ending}")
        ask(reading, task, "cancel", {"node": found.id}, f"{found.id} ({_state(found)}) is cancelled", as_json)


def _state(node: Node) -> str:
    return str(node.ending if node.phase is Phase.ENDED else node.phase)


def _require_free(node: Node) -> None:
    if node.phase is Phase.OPEN:
        raise click.UsageError(f"{node.id} is at work; wait, or cancel it")
    if node.phase is Phase.ENDED and node.ending and node.ending.charged:
        raise click.UsageError(f"{node.id} is {node.ending}, and only what ended free can be run again")


def _read_change(source: str) -> str:
    cap = DEFAULT_CAPS.text_bytes
    try:
        if source == "-":
            data = sys.stdin.buffer.read(cap + 1)
        else:
            with Path(source).open("rb") as stream:
                data = stream.read(cap + 1)
    except OSError as error:
        raise click.UsageError(f"{source} cannot be read ({error.strerror})") from None
    if len(data) > cap:
        raise click.UsageError(f"{source} has more than {cap:,} bytes, the most that a change may have")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"{source} is not UTF-8 text") from None


def _path_of(reading: Reading, file: str) -> str:
    """What a plain file is in the workspace: the one editable file, else what has its name there."""
    policy = reading.task.policy()
    tree = tree_of(reading, reading.state.nodes[reading.state.run.root])
    found = [path for path in tree if Path(path).name == Path(file).name]
    if policy.only or len(found) == 1:
        return policy.only or found[0]
    where = "is several files" if found else "is no file"
    raise click.UsageError(f"{printable(Path(file).name)} {where} of the workspace; say which with --as PATH")


def _check_change(reading: Reading, node: Node | None, text: str) -> None:
    """What the orchestrator would refuse is refused here, where the author still sits in front of it."""
    policy = reading.task.policy()
    try:
        if node is None:
            parse(text, caps=policy.caps, only=policy.only)
        else:
            apply_text(tree_of(reading, node), text, policy)
    except Refusal as refusal:
        hint = "; a plain file goes in with --file" if refusal.reason is Reason.NOTHING_FOUND and text.strip() else ""
        raise click.UsageError(f"{refusal}{hint}") from None
