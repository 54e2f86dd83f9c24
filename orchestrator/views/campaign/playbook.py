"""`blastdoor playbook`: the versions of what agents work with, what each brought, and which one is used."""

from collections.abc import Mapping
from pathlib import Path

import click

from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.domain import figures
from orchestrator.domain.records import PlaybookVersion
from orchestrator.domain.state import State
from orchestrator.playbook import Pages, PlaybookError, corrected, pages_of, pinned, raw_of
from orchestrator.playbook.results import Tally, tallies
from orchestrator.text import printable, printable_lines
from orchestrator.views.campaign.actions import ask
from orchestrator.views.campaign.asking import Asked
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    open_campaign,
    print_json,
    ranking_of,
    task_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.playbook import contest_line, fate, version_record
from orchestrator.views.render.layout import diff_lines
from orchestrator.views.render.model import BREAK, Lines, Own, Part, Quote, Section, Words
from orchestrator.views.render.terminal import FAINT, Terminal
from orchestrator.wiring.reading import Reading


@click.group("playbook")
def command() -> None:
    """Show and choose the playbook that agents work with: its versions, their results, and the one in use."""


@command.command("log", cls=CampaignCommand)
@json_option
@task_argument
def log(task: Path, as_json: bool) -> None:
    """List every version: who wrote it and why, how attempts with it did, and what became of it."""
    with open_campaign(task) as reading:
        versions = _versions(reading)
        brought = tallies(reading.state, ranking_of(reading))
        contest = contest_line(reading.state, ranking_of(reading))
    if as_json:
        print_json([version_record(it, brought.get(it.number, Tally()), reading.state) for it in versions.values()])
        return
    rows = [_log_line(it, brought.get(it.number, Tally()), reading.state) for it in versions.values()]
    screen = open_screen()
    section = Section("playbook", body=[Lines([*rows, *([contest] if contest else [])])])
    screen.lines(Terminal(screen.width, screen.unicode).whole([section]))


@command.command("show", cls=CampaignCommand)
@click.option("--version", "number", type=int, metavar="N", help="Version to print; defaults to the current one.")
@json_option
@task_argument
def show(task: Path, number: int | None, as_json: bool) -> None:
    """Print every page of the current version, or of another one."""
    with open_campaign(task) as reading:
        chosen = _chosen(reading, number)
        pages = _pages(reading, chosen)
    if as_json:
        print_json({"version": chosen.number, "pages": dict(pages)})
        return
    screen = open_screen()
    for name, text in pages.items():
        screen.lines([[(printable(name), "bold")], *([(f"  {line}", "")] for line in printable_lines(text))])


@command.command("diff", cls=CampaignCommand)
@click.argument("old", type=int, metavar="OLD")
@click.argument("new", type=int, metavar="NEW")
@json_option
@task_argument
def diff(old: int, new: int, task: Path, as_json: bool) -> None:
    """Show the differences between version OLD and version NEW."""
    with open_campaign(task) as reading:
        if old == new:
            raise click.UsageError(f"{old} and {new} are the same version; name two to compare")
        before, after = (Tree.of(raw_of(_pages(reading, _chosen(reading, it)))) for it in (old, new))
    text = difference(before, after)
    if as_json:
        print_json({"old": old, "new": new, "diff": text})
        return
    open_screen().lines(diff_lines(text))
    if not text:
        click.echo("no difference", err=True)


@command.command("use", cls=CampaignCommand)
@click.argument("number", type=int, metavar="VERSION")
@json_option
@task_argument
def use(number: int, task: Path, as_json: bool) -> None:
    """Use VERSION for all later attempts; a version on trial beside the current one is discarded."""
    with open_campaign(task) as reading:
        chosen = _chosen(reading, number)
        if chosen.number == reading.state.campaign.playbook:
            raise click.UsageError(f"version {number} is the present one already")
        present = _chosen(reading, None)
        own = _pages(reading, chosen)
        what = f"version {number} is used"
        if pinned(own, _pages(reading, present)) != own:
            what = (
                f"a new version is made of version {number} and the corrections of version {present.number}, and used"
            )
        ask(reading, task, Asked("playbook use", {"version": number}, what), as_json)


@command.command("correct", cls=CampaignCommand)
@click.argument("text", metavar="TEXT")
@click.option("--drop", is_flag=True, help="Remove this correction instead of adding it.")
@json_option
@task_argument
def correct(text: str, task: Path, drop: bool, as_json: bool) -> None:
    """Pin TEXT, one line, as a correction: every later version contains it, even one that an evolver writes."""
    with open_campaign(task) as reading:
        pages = _pages(reading, _chosen(reading, None))
        try:
            corrected(pages, text, drop=drop)
        except PlaybookError as error:
            raise click.UsageError(printable(str(error))) from None
        what = "the correction is removed" if drop else "the correction is pinned"
        ask(reading, task, Asked("playbook correct", {"text": text, "drop": drop}, what), as_json)


def _versions(reading: Reading) -> Mapping[int, PlaybookVersion]:
    if not reading.state.playbooks:
        proposer = printable(reading.state.run.proposer)
        raise click.UsageError(f"this campaign has no playbook: its proposer ({proposer}) asks no model")
    return reading.state.playbooks


def _chosen(reading: Reading, number: int | None) -> PlaybookVersion:
    versions = _versions(reading)
    wanted = reading.state.campaign.playbook if number is None else number
    if wanted is None or wanted not in versions:
        raise click.UsageError(f"there is no version {wanted} of the playbook; there are 1 to {max(versions)}")
    return versions[wanted]


def _pages(reading: Reading, version: PlaybookVersion) -> Pages:
    try:
        return pages_of(reading.artifacts.get_files(version.files))
    except PlaybookError as error:
        raise click.UsageError(printable(str(error))) from None


def _log_line(version: PlaybookVersion, tally: Tally, state: State) -> Words:
    became = fate(version, state)
    style = "green" if became == "used now" else "yellow" if became == "is being tried" else ""
    whence = f" from {version.parent}" if version.parent is not None else ""
    line: list[Part] = [Own(f"{version.number}", "bold"), f"  {figures.clock(version.at)}  by {version.by}{whence}"]
    line += ["  ", Quote(became, 500, style)] if became else []
    line += [BREAK, "   ", Quote(version.why, 500, FAINT)]
    return [*line, BREAK, "   ", Own(tally.words, FAINT)]
