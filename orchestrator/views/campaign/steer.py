"""`blastdoor steer`: an instruction to all who propose from now on."""

from pathlib import Path

import click

from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.loop.steering import LONGEST
from orchestrator.text import short
from orchestrator.views.campaign import asking
from orchestrator.views.campaign.actions import ask
from orchestrator.views.campaign.history import read_moments
from orchestrator.views.campaign.opening import CampaignCommand, json_option, open_campaign, print_json
from orchestrator.wiring.reading import Reading

_QUOTES = 'the instruction goes into quotes, the task\'s folder behind it: blastdoor steer "…" TASK'


@click.command("steer", cls=CampaignCommand)
@click.option("--list", "is_list", is_flag=True, help="Show the instructions so far; send none.")
@json_option
@click.argument("words", nargs=-1, metavar="[TEXT] [TASK]")
def command(words: tuple[str, ...], is_list: bool, as_json: bool) -> None:
    """Send an instruction to every later proposal, like "prefer numpy over loops".

    Every later proposal is made with it, and an agent at work receives it. TEXT is required unless --list is given.
    """
    text, task = _parted(words, is_list)
    with open_campaign(task, glance=is_list) as reading:
        if is_list:
            _show(reading, as_json)
            return
        ask(reading, task, asking.steer(reading, text), as_json)


def _parted(words: tuple[str, ...], is_list: bool) -> tuple[str, Path]:
    most = 1 if is_list else 2
    if len(words) > most:
        raise click.UsageError("--list takes the task's folder and no text" if is_list else _QUOTES)
    if is_list:
        return "", Path(*words)
    if not words or (len(words) == 1 and Path(words[0]).is_dir()):
        raise click.UsageError(f"what should be done? {_QUOTES}")
    return words[0].strip(), Path(*words[1:])


def _show(reading: Reading, as_json: bool) -> None:
    said: list[tuple[str, str, set[str]]] = []
    for at, event in read_moments(reading.ledger):
        if isinstance(event, e.Steered):
            said.append((at, event.text, set()))
        elif isinstance(event, e.Proposed):
            for _, _, heard in said:
                heard.add(event.node)
    waits = [(at, str(body["text"])) for at, body in reading.waiting("steer")]
    if as_json:
        told = [{"at": at, "text": text, "nodes": sorted(heard), "waits": False} for at, text, heard in said]
        print_json([*told, *({"at": at, "text": text, "nodes": [], "waits": True} for at, text in waits)])
        return
    if not said and not waits:
        click.echo('nothing was said so far; blastdoor steer "…" tells all who propose')
    for at, text, heard in said:
        click.echo(f"{figures.moment(at)} {short(text, LONGEST)} ({figures.plural(len(heard), 'node')} since)")
    for at, text in waits:
        click.echo(f"{figures.moment(at)} {short(text, LONGEST)} (waits for the next blastdoor resume)")
