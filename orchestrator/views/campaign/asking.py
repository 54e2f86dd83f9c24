"""What a person can ask of a campaign, checked where the person still sits in front of it: the command line and the
page both ask through here.

A request lies in the ledger's inbox until somebody takes it: within a second where an orchestrator works on the
campaign, else when `blastdoor resume` goes on. Every function raises click's UsageError with one line.
"""

import getpass
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from orchestrator.change import Refusal
from orchestrator.change.applying import apply_text, check_paths
from orchestrator.change.forms import parse
from orchestrator.change.policy import DEFAULT_CAPS
from orchestrator.change.refusal import Reason
from orchestrator.domain.records import Node, Phase
from orchestrator.loop.requests import LONGEST_WHY
from orchestrator.loop.steering import unfit, unheard
from orchestrator.units import format_size
from orchestrator.views.campaign.diff import tree_of
from orchestrator.views.campaign.opening import chosen_node, holder_of, present_node
from orchestrator.views.campaign.sections.work import who_waits
from orchestrator.wiring.reading import Reading

LONGEST_DESCRIPTION = 500


@dataclass(frozen=True)
class Asked:
    """`what` begins the line that says what will happen; when it will follows."""

    kind: str
    body: Mapping[str, Any]
    what: str


def when(reading: Reading) -> str:
    holder = holder_of(reading)
    return (
        f"within a second; {holder} works on it" if holder else "at the next blastdoor resume; nobody works on it now"
    )


def person() -> str:
    """Who asks, for the ledger."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # one without a name
        user = "somebody"
    return f"{user} on {socket.gethostname()}"


def pause(reading: Reading, *, off: bool) -> Asked:
    if not reading.holder:
        raise click.UsageError("nobody works on it, so there is nothing to pause; blastdoor resume goes on")
    what = "it goes on" if off else "no new attempt is opened, the open ones end as usual,"
    return Asked("pause", {"paused": not off}, what)


def inject(reading: Reading, text: str, on: str | None, description: str) -> Asked:
    """`on` is the node that it is applied to, the best of then where there is none."""
    if not 1 <= len(description.strip()) <= LONGEST_DESCRIPTION:
        raise click.UsageError(f"--describe needs 1 to {LONGEST_DESCRIPTION} characters")
    if len(text.encode()) > DEFAULT_CAPS.text_bytes:
        raise click.UsageError(f"a change may have at most {format_size(DEFAULT_CAPS.text_bytes)}")
    node = present_node(reading, on) if on else None
    _check_change(reading, node, text)
    body = {"text": text, "on": node.id if node else None, "description": description.strip()}
    return Asked("inject", body, f"the change becomes a node on {node.id if node else 'the best node of then'},")


def requeue(reading: Reading, name: str) -> Asked:
    node = present_node(reading, name)
    if node.phase is Phase.OPEN:
        raise click.UsageError(f"{node.id} is at work; wait, or cancel it")
    if node.phase is Phase.ENDED and node.ending and node.ending.charged:
        raise click.UsageError(f"{node.id} is {node.ending}, and only what ended free can be run again")
    return Asked("requeue", {"node": node.id}, f"{node.id} ({_state(node)}) is run again")


def release(reading: Reading, name: str) -> Asked:
    node = present_node(reading, name)
    if node.phase is not Phase.QUARANTINED:
        raise click.UsageError(f"{node.id} is not in quarantine; it is {_state(node)}")
    return Asked("release", {"node": node.id}, f"{node.id} leaves quarantine and is queued")


def cancel(reading: Reading, name: str) -> Asked:
    node = present_node(reading, name)
    if node.phase is Phase.ENDED:
        raise click.UsageError(f"{node.id} has ended already: {node.ending}")
    return Asked("cancel", {"node": node.id}, f"{node.id} ({_state(node)}) is cancelled")


def steer(reading: Reading, text: str) -> Asked:
    waiting = [str(body["text"]) for _, body in reading.waiting("steer")]
    if refused := unheard(reading.state.run) or unfit(text, [*reading.state.campaign.steering, *waiting]):
        raise click.UsageError(refused)
    return Asked("steer", {"text": text}, "all who propose from now on are told")


def answer(reading: Reading, name: str, *, accepted: bool, why: str = "") -> Asked:
    """A person's word on a candidate that waits for it."""
    if len(why) > LONGEST_WHY:
        raise click.UsageError(f"--why has at most {LONGEST_WHY} characters")
    node = chosen_node(reading.state, name)
    waiting = [it.id for it in who_waits(reading.state)]
    if node.id not in waiting:
        others = f"; {', '.join(waiting)} does" if waiting else "; nothing does"
        raise click.UsageError(f"{node.id} does not wait for a person's word{others}")
    kind, done = ("accept", "accepted") if accepted else ("decline", "declined")
    return Asked(kind, {"node": node.id, "why": why.strip()}, f"{node.id} is {done}")


def _state(node: Node) -> str:
    return str(node.ending if node.phase is Phase.ENDED else node.phase)


def _check_change(reading: Reading, node: Node | None, text: str) -> None:
    """What the orchestrator would refuse is refused here, where the author still sits in front of it."""
    policy, best = reading.task.policy(), reading.state.champion()
    try:
        if node is None:
            check_paths(parse(text, caps=policy.caps, only=policy.only, exact=True), policy)
        else:
            apply_text(tree_of(reading, node), text, policy, exact=True)
    except Refusal as refusal:
        hint = "; a plain file goes in with --file" if refusal.reason is Reason.NOTHING_FOUND and text.strip() else ""
        raise click.UsageError(f"{refusal}{hint}") from None
    if node is None and best:
        try:
            apply_text(tree_of(reading, best), text, policy, exact=True)
        except Refusal as refusal:
            if refusal.reason is Reason.NOT_EDITABLE:  # whichever node is the best by then; lines may fit that one
                raise click.UsageError(str(refusal)) from None
