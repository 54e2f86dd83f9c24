"""`blastdoor stalls`: who stalls, and what that costs; with --replay, what the watch makes of recorded streams."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from orchestrator.domain import figures
from orchestrator.domain.records import Spent
from orchestrator.domain.stalls import Tally, stall_tallies
from orchestrator.task import FILE as TASK_FILE
from orchestrator.task import load_task, parse_duration
from orchestrator.text import short
from orchestrator.views.campaign.history import read_moments
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    open_campaign,
    print_json,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.parsing import Parsed
from orchestrator.views.render.layout import cells
from orchestrator.views.render.model import Lines, Own, Prose, Quote, Section, Table, Words
from orchestrator.views.render.terminal import Terminal
from orchestrator.watch import BadStream, Cause, Config, Outcome, Replayed, fair_floor, replay_files
from orchestrator.watch.recording import FOLDER
from orchestrator.wiring.models import watch_config
from orchestrator.wiring.reading import campaign_folder

_WIDE = 60
_DURATION = Parsed("duration", parse_duration)
_COLUMNS = ("agent", "model", "configuration", "goes", "stalls", "found after", "tokens lost", "$ lost", "saved")
_FLAGS = (
    ("floor", click.FloatRange(min=0, max=100_000), "N", "floor, in tokens per second."),
    ("window", _DURATION, "DURATION", "window over which the floor is measured."),
    ("grace", _DURATION, "DURATION", "time after the first token in which the floor does not count."),
    ("first-token", _DURATION, "DURATION", "deadline of the first token."),
    ("thinking", _DURATION, "DURATION", "cap on thinking that is not shown."),
    ("tool", _DURATION, "DURATION", "cap on a running tool."),
    ("waiting", _DURATION, "DURATION", "cap on waiting for the provider."),
    ("loop", click.IntRange(min=2, max=1000), "N", "number of equal calls with equal results that make a loop."),
)


@dataclass(frozen=True)
class _Row:
    """Names in it come from the author of a file or an agent. `notes` stand below it."""

    cells: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, kind, what, told in reversed(_FLAGS):
        command = click.option(f"--{name}", type=kind, metavar=what, help=f"With --replay: {told}")(command)
    return command


@click.command("stalls", cls=CampaignCommand)
@click.option(
    "--replay",
    "places",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="Run the stall watch over recorded streams: a file, or a folder of them, with the [stall] of their task.",
)
@_config_options
@json_option
@click.argument("task", required=False, type=click.Path(path_type=Path))
def command(task: Path | None, places: Sequence[Path], as_json: bool, **wanted: float | None) -> None:
    """Show how often each agent stalled, with which model and configuration, and what that cost and saved."""
    given = {name: value for name, value in wanted.items() if value is not None}
    if places:
        _show_replay(places, task or _task_around(places), given, as_json)
        return
    if given:
        raise click.UsageError(
            f"--{next(iter(given)).replace('_', '-')} is for --replay FILE; the task file has [stall]"
        )
    with open_campaign(task or Path()) as reading:
        found = stall_tallies(event for _, event in read_moments(reading.ledger))
    if as_json:
        print_json({"agents": [tally.record() for tally in found]})
        return
    _show(stall_lines(found), _COLUMNS, _tallies(found), [])


def replay_command(task: Path, config: Config) -> str:
    """What to type to see the campaign's own streams under `config`: the task's, with a floor that may be learnt."""
    floor = "" if config.floor == load_task(task, searches=False).stall.floor else f" --floor {config.floor!r}"
    return shlex.join(["blastdoor", "stalls", "--replay", str(campaign_folder(task) / FOLDER), str(task)]) + floor


def _task_around(places: Sequence[Path]) -> Path | None:
    """The task whose campaign recorded all of them; None where there is none."""
    found = {_task_of(place) for place in places}
    return found.pop() if len(found) == 1 else None


def _task_of(place: Path) -> Path | None:
    parents = place.absolute().parents
    return next(
        (it for it in parents if (it / TASK_FILE).is_file() and place.absolute().is_relative_to(campaign_folder(it))),
        None,
    )


def _config(task: Path | None, given: dict[str, float]) -> Config:
    start = watch_config(load_task(task, searches=False).stall) if task else Config()
    values: dict[str, Any] = {name if name in ("floor", "loop") else f"{name}_s": it for name, it in given.items()}
    try:
        return replace(start, **values)
    except ValueError as error:
        raise click.UsageError(str(error).replace("_s ", " ", 1)) from None


def stall_lines(found: Sequence[Tally]) -> list[str]:
    """The whole in a few sentences."""
    takes, stalls = sum(it.takes for it in found), sum(it.stalls for it in found)
    if not takes:
        return ["No attempt asked a model yet, so none could stall."]
    if not stalls:
        return [f"None of {_goes(takes)} stalled."]
    lost = sum((it.lost for it in found), Spent())
    most = "at most " if any(it.bounds for it in found) else ""
    saved = figures.duration(sum(it.saved_s for it in found))
    return [
        f"{stalls} of {_goes(takes)} stalled ({100 * stalls / takes:.0f} %); "
        f"lost: {most}{figures.dollars(lost.microdollars)}, {lost.tokens:,} tokens.",
        f"A plain time-out after 1,200 s without a byte would have waited at least {saved} longer.",
    ]


def _goes(count: int) -> str:
    """An attempt that stalls is queued again, and each go at it counts."""
    return "1 go at an attempt" if count == 1 else f"{count:,} goes at attempts"


def _tallies(found: Iterable[Tally]) -> list[_Row]:
    rows = []
    for it in found:
        stalled = f"{it.stalls} ({100 * it.rate:.0f} %)"
        after = figures.duration(it.after_s) if it.after_s is not None else ""
        numbers = (str(it.takes), stalled, after, f"{it.lost.tokens:,}", figures.dollars(it.lost.microdollars))
        notes = [f"{count} {cause}" for cause, count in it.causes.most_common()]
        notes += [f"{it.quarantined} in quarantine"] if it.quarantined else []
        notes += [f"of {it.bounds} the most that was lost: cut off, so booked at the worst case"] if it.bounds else []
        cells = (it.agent, it.model, it.configuration, *numbers, figures.duration(it.saved_s))
        rows.append(_Row(cells, tuple(notes)))
    return rows


def _show_replay(places: Sequence[Path], task: Path | None, given: dict[str, float], as_json: bool) -> None:
    config = _config(task, given)
    try:
        found = list(replay_files(places, config))
    except BadStream as error:
        raise click.UsageError(str(error)) from None
    if not found:
        raise click.UsageError(f"there is no recorded stream (*.jsonl) in {short(str(places[0]), 200)}")
    if as_json:
        print_json({"streams": [_record(it) for it in found]})
        return
    whose = f"[stall] of {short(str(task), 200)}" if task else "the defaults of [stall]"
    had = f"The watch had {whose}{', with the flags given' if given else ''}: floor {config.floor:g} tokens/s."
    columns = ("stream", "label", "ended as", "the watch says", "after", "tokens saved", "time saved")
    _show([], columns, [_replayed(it) for it in found], [*_in_all(found), had])


def _replayed(it: Replayed) -> _Row:
    rate = f" ({it.pulse.rate:.3g} tokens/s)" if it.pulse.cause is Cause.BELOW_FLOOR and it.pulse.rate else ""
    says = f"{it.pulse.cause}{rate}" if it.stalled else "well"
    after = figures.duration(it.pulse.at) if it.stalled else ""
    saved = (f"{it.saved_tokens:,}", figures.duration(it.saved_s)) if it.stalled else ("", "")
    return _Row((it.header.name, it.header.label, it.outcome, says, after, *saved))


def _in_all(found: Sequence[Replayed]) -> list[str]:
    well = [it for it in found if it.outcome is Outcome.WELL]
    ended, wrong = sum(it.stalled for it in found), sum(it.wrong for it in well)
    streams = figures.plural(len(found), "stream")
    told = [f"{ended} of {streams} would have been ended; {wrong} of the {len(well)} that ended well."]
    floor = fair_floor(well)
    if floor is not None:
        told.append(f"A floor up to {floor:g} tokens/s would have ended none of those by its rate.")
    return told


def _record(it: Replayed) -> dict[str, Any]:
    return {
        "stream": it.header.name,
        "agent": it.header.agent,
        "model": it.header.model,
        "configuration": it.header.configuration,
        "label": it.header.label,
        "outcome": it.outcome,
        "stalled": it.stalled,
        "cause": it.pulse.cause,
        "detail": it.pulse.detail,
        "at_s": it.pulse.at if it.stalled else None,
        "ended_s": it.ended,
        "tokens": it.tokens,
        "saved_tokens": it.saved_tokens,
        "saved_s": it.saved_s,
        "lowest": it.lowest,
    }


def _show(before: Sequence[str], columns: Sequence[str], rows: Sequence[_Row], after: Sequence[str]) -> None:
    """As a table where its words fit side by side, else one block for each row."""
    screen = open_screen()
    unbounded = Terminal(None, screen.unicode)
    table: list[Sequence[Words]] = []
    blocks: list[Words] = []
    for row in rows:
        table.append([Quote(cell, _WIDE) for cell in row.cells])
        table += [[["  ", Quote(note, _WIDE)], *[""] * (len(columns) - 1)] for note in row.notes]
        blocks.append(Own(short(row.cells[0] or columns[0], _WIDE), "bold"))
        named = zip(columns[1:], row.cells[1:], strict=True)
        told = [*(f"{name}: {short(cell, _WIDE)}" for name, cell in named if cell), *row.notes]
        blocks += [["  ", Quote(line, 2 * _WIDE)] for line in told]
    lines = list(unbounded.whole([Section("stalls", body=[Table(columns, table)] if rows else [])]))
    if max(map(cells, lines), default=0) > screen.width:
        lines = list(Terminal(screen.width, screen.unicode).whole([Section("stalls", body=[Lines(blocks)])]))
    head, foot = ([Section("stalls", body=[Prose(line) for line in it])] for it in (before, after))
    screen.lines([*unbounded.whole(head), *lines, *unbounded.whole(foot)])
