"""While it runs: a picture in a terminal, one line per ended attempt in a pipe."""

import io

import pytest
from rich.console import Console

from orchestrator.budget import Accounts
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Purpose
from orchestrator.domain.state import State
from orchestrator.loop.book import book
from orchestrator.views.campaign.bars import bar
from orchestrator.views.campaign.follow import Progress
from tests.orchestrator.views.campaign.builder import Story, campaign


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def replay(progress: Progress, story: Story, clock: Clock | None = None) -> None:
    state, accounts = State(), Accounts()
    for at, event in story.events:
        book(accounts, event)
        state.apply(event, at)
        progress.on_event(event, at, state, accounts)
        if clock:
            clock.now += 1.0


def pipe() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80, markup=False, highlight=False)


def terminal(width: int = 80, height: int = 20) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=height, markup=False, highlight=False)


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pipe_gets_one_line_for_each_ended_attempt() -> None:
    """Nothing else, no colours, in the order of their ends."""
    story, console = campaign(20), pipe()
    with Progress([Metric()], console) as progress:
        replay(progress, story)
    lines = output(console).splitlines()
    ended = [event.node for _, event in story.events if isinstance(event, e.AttemptEnded)]
    assert [line.split()[2] for line in lines] == ended
    assert "\x1b" not in output(console)
    assert "score=0.96" in lines[0]


def test_a_requeued_attempt_is_told() -> None:
    """A stall is said with what becomes of it."""
    story, console = Story().open(), pipe()
    story.baseline(1.0)
    node = story.attempt("1")
    story.tell(e.AttemptRequeued(node=node, ending=Ending.STALLED, why="no first token", not_before=""))
    replay(Progress([Metric()], console), story)
    assert "1.1 stalled, queued  no first token" in output(console)


def test_the_picture() -> None:
    """A bar of the attempts, what was spent, the best, one line for each open attempt, the last endings."""
    story, clock = campaign(20), Clock()
    story.attempt("1")
    story.attempt("1")
    progress = Progress([Metric()], terminal(), clock)
    replay(progress, story, clock)
    with (console := pipe()).capture() as capture:
        console.print(progress)
    lines = capture.get().splitlines()
    champion = story.state.champion()
    assert champion
    assert champion.verdict
    assert lines[0].startswith("attempts ")
    assert "/40" in lines[0]
    assert "$" in lines[0]
    assert f"at {champion.id}" in lines[1]
    assert [line.split()[1] for line in lines[2:4]] == ["running", "running"]
    assert len(lines) <= 19


def test_champion_that_is_run_again() -> None:
    """A champion is shown at work while it is measured again, and no longer."""
    story = Story().open()
    story.baseline(1.0)
    hold = "1#repeat-2"
    story.tell(e.Reserved(hold=hold, amounts={}))
    story.score("1", {"score": 1.1}, purpose=Purpose.REPEAT)
    progress = Progress([Metric()], terminal())
    replay(progress, story)
    assert list(progress._picture.open) == ["1"]
    story.tell(e.Settled(hold=hold, node="1", spent={}))
    progress = Progress([Metric()], terminal())
    replay(progress, story)
    assert not progress._picture.open


@pytest.mark.parametrize(("width", "height"), [(20, 5), (60, 8), (200, 50)])
def test_the_picture_fits_any_size(width: int, height: int) -> None:
    """However the terminal is resized, no line is longer and there are not more of them; what is open gives way."""
    story = campaign(20, spare=40)
    for _ in range(30):
        story.attempt("1", description="x" * 300)
    progress = Progress([Metric()], terminal())
    replay(progress, story)
    with (console := terminal(width, height)).capture() as capture:
        console.print(progress)
    lines = capture.get().splitlines()
    assert len(lines) < height
    if height < 30:
        assert any("more at" in line for line in lines)
    with (wide := terminal(200, 60)).capture() as again:
        wide.print(progress)
    assert "then relax the outer ring" in again.get()


def test_it_ends_when_interrupted() -> None:
    """Ctrl-C goes through, and the terminal is put right: the cursor is back."""
    console = terminal()
    with pytest.raises(KeyboardInterrupt), Progress([Metric()], console):
        raise KeyboardInterrupt
    assert output(console).endswith("\x1b[?25h") or "\x1b[?25h" in output(console)


def test_t57_a_description_can_not_act() -> None:
    """Escapes and markup of a description are shown as they are."""
    story, console = Story().open(), pipe()
    story.baseline(1.0)
    story.attempt("1", 0.5, description="[red]x[/red]\x1b[2J")
    replay(Progress([Metric()], console), story)
    assert "[red]x[/red]\\x1b[2J" in output(console)


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
    assert bar(used, held, limit, 10, unicode=False).plain == shown
