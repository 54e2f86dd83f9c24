"""While it runs: a picture in a terminal, one line per ended attempt in a pipe."""

import io
import sys

import click
import pytest
import structlog
from rich.console import Console

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.tier import Tier
from orchestrator.views.live.progress import Progress
from orchestrator.views.live.scene import Caps
from orchestrator.views.render.layout import bar, plain
from tests.orchestrator.views.campaign.builder import Story, campaign

RANKING = Ranking([Metric()])
CAPS = Caps(width=2)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def pipe() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80, markup=False, highlight=False)


def terminal() -> Console:
    return Console(file=Screen(), force_terminal=True, width=80, height=24, markup=False, highlight=False)


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def progress_of(story: Story, console: Console, quiet: bool = False, stdout: io.StringIO | None = None) -> Progress:
    out = stdout or Screen()
    return Progress(story.state, story.accounts, RANKING, CAPS, console=console, stdout=out, quiet=quiet)


def told(story: Story, console: Console, quiet: bool = False, stdout: io.StringIO | None = None) -> Story:
    """The same story once more, event by event, with somebody who looks on."""
    again = Story().tell(*[event for _, event in story.events[:4]])
    with progress_of(again, console, quiet, stdout) as progress:
        for _, event in story.events[4:]:
            again.tell(event)
            progress.on_event(event, again.events[-1][0])
    return again


def test_a_pipe_gets_one_line_for_each_ended_attempt() -> None:
    """Nothing else, no colours, in the order of their ends."""
    story, console = campaign(20), pipe()
    told(story, console)
    lines = output(console).splitlines()
    ended = [event.node for _, event in story.events if isinstance(event, e.AttemptEnded)]
    assert [line.split()[2] for line in lines] == ended
    assert "\x1b" not in output(console)
    assert "score=0.96" in lines[0]


@pytest.mark.parametrize("name", ["dumb", "unknown", ""])
def test_a_dumb_terminal_gets_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence that it would print as garbage. With stdout in a pipe, stderr shows no picture either."""
    told(campaign(5), console := terminal(), stdout=io.StringIO())
    assert "\x1b[?1049h" not in output(console)
    assert "score=0.96" in output(console)
    monkeypatch.setenv("TERM", name)
    console = Console(file=Screen(), force_terminal=True, width=80, color_system=None)
    told(campaign(5), console)
    assert "\x1b" not in output(console)
    assert "score=0.96" in output(console)


def test_quiet_is_quiet() -> None:
    """As `--json` asks for."""
    for console in (pipe(), terminal()):
        told(campaign(5), console, quiet=True)
        assert output(console) == ""


def began() -> Story:
    story = Story().open()
    story.baseline(1.0)
    return story


def said(story: Story) -> list[str]:
    """What a pipe gets after the baseline's line, without the times."""
    told(story, console := pipe())
    return [" ".join(line.split()[1:]) for line in output(console).splitlines()[1:]]


def test_what_needs_a_person_is_told() -> None:
    """A stall is said with what becomes of it. One who cannot see the picture reads who waits for a word, and why
    nothing more is opened.
    """
    story = began()
    node = story.attempt("1")
    story.tell(e.AttemptRequeued(node=node, ending=Ending.STALLED, why="no first token", not_before=""))
    story.tell(e.PromotionAsked(node=node, over="1"), e.PauseSet(paused=True), e.PauseSet(paused=True, why="a storm"))
    stalled, *lines = said(story)
    assert "1.1 stalled, queued no first token" in stalled
    assert lines == [
        "1.1 waits for your word: blastdoor accept 1.1, or decline; blastdoor diff 1.1",
        "paused: a storm; blastdoor pause --off goes on",
    ]


def test_t86_an_outage_is_told_once_and_its_end() -> None:
    """Not every probe that fails."""
    opened = e.BreakerOpened(providers=("modal",), why="away", wait_s=5)
    story = began().tell(opened, opened.model_copy(update={"tries": 1}), e.BreakerTried(), e.BreakerClosed())
    assert said(story.tell(e.StoodStill(seconds=90))) == [
        "modal is waited for, the next probe is in 5 s: away",
        "the providers do their work again",
        "the orchestrator stood still for 90 s, which count for nobody",
    ]


def test_a_terminal_gets_a_picture_and_is_put_right() -> None:
    """On the screen beside the usual one, which comes back with its cursor."""
    console = terminal()
    told(campaign(5), console)
    text = output(console)
    assert text.startswith("\x1b[?1049h\x1b[?25l")
    assert text.endswith("\x1b[?25h\x1b[?1049l")
    assert "circle-packing" in text


def test_it_ends_when_interrupted() -> None:
    """Ctrl-C goes through, and the terminal is put right, however often it is closed."""
    progress = progress_of(Story().open(), console := terminal())
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    progress.close()
    assert output(console).count("\x1b[?25h\x1b[?1049l") == 1


def test_what_others_say_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words on stderr do not spoil the picture; they come after it, in order."""
    heard, console, story = io.StringIO(), terminal(), Story().open()
    monkeypatch.setattr(sys, "stderr", heard)
    before = structlog.get_config()
    with progress_of(story, console) as progress:
        click.echo("ending what runs", err=True)
        structlog.get_logger().warning("metrics.csv not written")
        assert heard.getvalue() == ""
        progress.on_event(e.PauseSet(paused=True), "2025-03-01T09:00:00+00:00")
        assert heard.getvalue() == ""
    assert heard.getvalue().splitlines()[0] == "ending what runs"
    assert "metrics.csv not written" in heard.getvalue()
    assert sys.stderr is heard
    assert structlog.get_config() == before


@pytest.mark.parametrize(
    ("used", "held", "limit", "shown"),
    [
        (0, 0, 10, ".........."),
        (5, 2, 10, "#####==..."),
        (1, 0, 1000, "#........."),
        (999, 0, 1000, "#########."),
        (10, 0, 10, "##########"),
        (12, 0, 10, "##########"),
        (0, 0, 0, ".........."),
    ],
)
def test_a_bar(used: int, held: int, limit: int, shown: str) -> None:
    """A little is seen, and only all of it fills the bar."""
    assert plain(bar(used, held, limit, 10, unicode=False)) == shown


def test_a_line_says_why_and_how_far_to_trust() -> None:
    """A discard has its reason, a failure does not repeat its own name, and a shared judge's score is marked. Escapes
    and markup of a description are shown as they are.
    """
    story = began()
    story.attempt("1", 0.5, description="slower")
    story.end(story.attempt("1", None, description="breaks"), Ending.FAILED, why="failed")
    story.attempt("1", 2.0, kept=True, verdict={"tier": Tier.SHARED}, description="[red]x[/red]\x1b[2J")
    assert said(story) == [
        "○ 1.1 discarded score=0.5 no better than the champion slower",
        "✗ 1.2 failed breaks",
        "● 1.3 kept score=2 [shared] [red]x[/red]\\x1b[2J",
    ]
