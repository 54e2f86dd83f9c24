"""`blastdoor watch`: the picture of a campaign that another process works on. It reads the ledger and nothing else."""

import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
from pydantic import ValidationError
from rich.text import Text

from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.domain.folding import fold
from orchestrator.ledger import held_by
from orchestrator.loop.book import book
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.text import printable
from orchestrator.views.campaign.opening import CampaignCommand, open_campaign, ranking_of, task_argument
from orchestrator.views.campaign.screen import Screen, open_screen
from orchestrator.views.campaign.waiting import how_it_goes_on
from orchestrator.views.live.picture import Picture, pulses_of
from orchestrator.views.live.pulses import Pulses
from orchestrator.views.live.scene import Caps
from orchestrator.views.live.tally import Tally
from orchestrator.views.live.terminal import Terminal, can_be_drawn_on
from orchestrator.wiring.options import resolve
from orchestrator.wiring.reading import Reading

POLL_S = 0.25
_ONCE = (80, 24)


@dataclass
class Watched:
    """A campaign as the ledger tells it: the state of the first look, then every event that was appended since."""

    reading: Reading
    unicode: bool = True
    after: int = 0
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        reading = self.reading
        self.after = reading.head.seq
        ranking, caps = ranking_of(reading), caps_of(reading)
        self.tally = Tally(reading.state, reading.accounts, ranking, caps, unicode=self.unicode, task=reading.named)

    def poll(self) -> Iterator[tuple[str, e.Event]]:
        """What came since, folded in one by one. One read of the index where nothing came."""
        for record in self.reading.ledger.read(after=self.after):
            self.after = record.seq
            try:
                event = e.read_event(record.body)
            except ValidationError:
                line = f"record {record.seq} is a {printable(record.kind)}, which this version does not know"
                raise click.UsageError(f"{line}; watch with the version that works on it") from None
            book(self.reading.accounts, event)
            fold(self.reading.state, event, record.at)
            self.tally.on_event(event, record.at)
            yield record.at, event

    def picture(self, picture: Picture, width: int, height: int) -> list[Text]:
        scene, now = self.tally.scene(), time.time()
        pulses = pulses_of(Pulses(self.reading.folder / "live"), scene, now)
        return picture.lines(scene, width, height, now, pulses)

    @property
    def holder(self) -> str | None:
        found = held_by(self.reading.folder / "lock")
        return printable(str(found)) if found else None

    @property
    def ending(self) -> str:
        """Why there is nothing more to watch."""
        campaign, next_step = self.reading.state.campaign, how_it_goes_on(self.reading.state)
        if campaign.session_open:
            return f"nobody works on it: it died at its work, and {next_step}"
        return f"stopped: {printable(campaign.stopped) or 'its session ended'}; {next_step}"


def caps_of(reading: Reading) -> Caps:
    """As its worker found them: flags are kept with the run, the rest is in the task and in the settings."""
    context = click.get_current_context(silent=True)
    settings = (context.find_object(Settings) if context else None) or Settings()
    run = reading.state.run
    options = resolve(Flags(), reading.task, settings, json.loads(run.options), runs=False)
    return Caps(options["width"] or run.width, options["wall"], options["patience"])


def follow(watched: Watched, show: Callable[[str, e.Event], None], draw: Callable[[], None]) -> None:
    """Until nobody works on the campaign any more."""
    while True:
        # Asked first: what its last holder wrote is read after it was seen to be gone.
        gone = watched.holder is None
        for at, event in watched.poll():
            show(at, event)
        draw()
        if gone:
            return
        time.sleep(POLL_S)


def _in_lines(watched: Watched, screen: Screen) -> None:
    def show(at: str, event: e.Event) -> None:
        if line := watched.tally.said(event):
            screen.line(Text.assemble(f"{figures.clock(at)} ", line))

    follow(watched, show, lambda: None)


def _in_place(watched: Watched, screen: Screen) -> None:
    terminal, picture = Terminal(screen.console), Picture(screen.unicode)

    def draw() -> None:
        width, height = terminal.size
        holder = watched.holder
        picture.notice = "" if holder else watched.ending
        terminal.draw(watched.picture(picture, width, height))

    terminal.enter()
    try:
        follow(watched, lambda _, __: None, draw)
    finally:
        terminal.leave()


def _once(watched: Watched, screen: Screen) -> None:
    # Below it stand a line of ours and the shell's own.
    size = (screen.console.width - 1, screen.console.height - 3) if screen.console.is_terminal else _ONCE
    for line in watched.picture(Picture(screen.unicode), *size):
        screen.line(line)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A polite kill leaves the terminal as it was, like Ctrl-C."""

    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@click.command("watch", cls=CampaignCommand)
@click.option("--once", is_flag=True, help="Print one picture and exit.")
@task_argument
def command(task: Path, once: bool) -> None:
    """Watch a campaign that is running in another terminal; Ctrl-C stops watching and changes nothing.

    In a pipe, prints one line for each attempt that ends. Exits when no process works on the campaign any more.
    """
    screen = open_screen()
    with open_campaign(task) as reading, _ended_by_signals():
        watched = Watched(reading, screen.unicode)
        if once or not watched.holder:
            _once(watched, screen)
            if not watched.holder:
                click.echo(watched.ending, err=True)
        elif can_be_drawn_on(screen.console, sys.stdout):
            _in_place(watched, screen)
            if not watched.holder:
                _once(watched, screen)
                click.echo(watched.ending, err=True)
        else:
            _in_lines(watched, screen)
            click.echo(watched.ending, err=True)
