"""`blastdoor logs`: the stored log of a node's last trial, or all that happens as it happens."""

import contextlib
import time

import click
from rich.text import Text

from orchestrator.domain.records import Node, Trial
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts
from orchestrator.text import printable_lines
from orchestrator.views.campaign.live import LiveLogs
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    holder_of,
    json_option,
    json_text,
    node_and_task,
    open_campaign,
    print_json,
    words_argument,
)
from orchestrator.views.campaign.screen import Screen, open_screen
from orchestrator.views.campaign.tail import Tail, Told, follow
from orchestrator.wiring.reading import Reading

_LINES = 20
# Bytes of a stored log, of which the last lines are asked for.
_LEAST_AT_ONCE, _MOST_AT_ONCE = 1 << 16, 1 << 22


@click.command("logs", cls=CampaignCommand)
@click.option("-f", "--follow", "following", is_flag=True, help="Keep printing new lines; Ctrl-C stops.")
@click.option(
    "--lines", type=click.IntRange(min=0), help=f"Number of last lines to print. [default: all; {_LINES} with -f]"
)
@json_option
@words_argument
def command(words: tuple[str, ...], following: bool, lines: int | None, as_json: bool) -> None:
    """Print the output of NODE's agent and the log of its last trial; without NODE, the campaign's events. With -f,
    keep following.

    The output of an untrusted program is shown escaped.
    """
    node, task = node_and_task(words)
    with open_campaign(task, glance=True) as reading:
        found = chosen_node(reading.state, node) if node else None
        if following or found is None:
            _events(reading, found, following, _LINES if lines is None else lines, as_json)
        else:
            _stored(reading, found, lines, as_json)


def last_logged(state: State, node: Node) -> Trial | None:
    logged = [trial for trial in state.trials_of(node.id) if trial.log and not trial.subject]
    return logged[-1] if logged else None


def _why_none(reading: Reading, node: Node) -> str:
    if node.id not in reading.state.unfinished:
        return "its trials printed nothing"
    return "it runs; logs -f follows it" if reading.holder else "it is not done, and nobody works on it now"


def _stored(reading: Reading, node: Node, lines: int | None, as_json: bool) -> None:
    trial = last_logged(reading.state, node)
    if (trial is None or trial.log is None) and node.agent_log is None:
        hint = _why_none(reading, node)
        click.echo(f"no log of {node.id} is stored: {hint}", err=True)
    agent, own = (
        last_lines(reading.artifacts, digest, lines) for digest in (node.agent_log, trial.log if trial else None)
    )
    if as_json:
        ending = {"trial": trial.id, "ending": trial.ending} if trial else {"trial": None, "ending": None}
        print_json({"node": node.id, **ending, "lines": own, "agent": agent})
        return
    screen = open_screen()
    heads = {f"what the agent of {node.id} printed": agent, f"trial {trial.id}" if trial else "": own}
    for head, text in heads.items():
        for line in ([Text(head, "bold")] if agent and text else []) + [Text(line) for line in text]:
            screen.line(line)


def last_lines(artifacts: Artifacts, digest: str | None, lines: int | None) -> list[str]:
    """Of a log that may have a gigabyte, no more is read than is printed; a line without end is cut."""
    if not digest:
        return []
    if lines is None:
        return list(printable_lines(artifacts.get(digest)))
    data, start = b"", artifacts.get_part(digest, 0, 0)[1]
    while start and data.count(b"\n") <= lines and len(data) < _MOST_AT_ONCE:
        begins = max(0, start - max(_LEAST_AT_ONCE, len(data)))
        data, start = artifacts.get_part(digest, begins, start - begins)[0] + data, begins
    text = list(printable_lines(data[data.find(b"\n") + 1 :] if start else data))
    return text[max(0, len(text) - lines) :]


def _events(reading: Reading, node: Node | None, following: bool, lines: int, as_json: bool) -> None:
    screen = open_screen()
    with LiveLogs(reading.folder / "live") as live, contextlib.suppress(KeyboardInterrupt):
        tail = Tail(reading.ledger, live, node.id if node else None)
        if not following:
            for told in tail.begin(lines):
                _show(screen, told, as_json)
            return
        if not holder_of(reading):
            click.echo("nobody works on it now; waiting for blastdoor resume (Ctrl-C ends this)", err=True)
        follow(tail, lines, lambda told: _show(screen, told, as_json), time.sleep)


def _show(screen: Screen, told: Told, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(told.record, indent=None))
    else:
        screen.line(Text(told.text, told.style))
