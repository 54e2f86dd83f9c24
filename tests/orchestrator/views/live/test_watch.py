"""`watch`: a campaign that another process works on, followed through its ledger."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.ledger import Entry, Ledger, canonical
from orchestrator.units import stamp, utc_now
from orchestrator.views.campaign.opening import open_campaign
from orchestrator.views.cli import cli
from orchestrator.views.live.tally import Tally
from orchestrator.views.live.watch import Watched, caps_of, follow
from tests.clicking import runner
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.live.test_picture import RANKING

ROOT = Path(__file__).parents[4]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(tmp_path / "task")
    made.story.open(beside="random", usd=5_000_000)
    made.story.baseline(1.0)
    made.story.attempt("1", 2.0, kept=True, description="more rows")
    made.write()
    return made


def grow(stage: Stage, written: int) -> None:
    """Append what the story told since."""
    with Ledger.open(stage.campaign / "ledger.sqlite3") as ledger:
        ledger.seize("another test")
        for at, event in stage.story.events[written:]:
            ledger.append([Entry(event.kind, canonical(event.model_dump(mode="json")))], {}, at)


def watch(*words: str | Path) -> str:
    ran = runner().invoke(cli, ["watch", *map(str, words)])
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_it_follows_a_growing_ledger(stage: Stage) -> None:
    """What is appended is folded in: state, accounts and picture are those of whoever wrote it. At the end it has the
    reason that is on record.
    """
    written = len(stage.story.events)
    with open_campaign(stage.folder) as reading:
        watched = Watched(reading)
        assert list(watched.poll()) == []
        stage.story.attempt("1.1", 3.0, kept=True)
        stage.story.attempt("1.1")
        grow(stage, written)
        assert [event.kind for _, event in watched.poll()] == [event.kind for _, event in stage.story.events[written:]]
        assert list(watched.poll()) == []
        assert reading.accounts == stage.story.accounts
        mine = watched.tally.scene()
        theirs = Tally(stage.story.state, stage.story.accounts, RANKING, caps_of(reading)).scene()
        for name in ("best", "best_node", "points", "gauges"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert [work.node for work in mine.work] == ["1.1.2"]
        written = len(stage.story.events)
        stage.story.tell(e.CampaignStopped(reason="60 of 60 attempts are used"), e.SessionEnded(why="x"))
        grow(stage, written)
        list(watched.poll())
        assert watched.ending == "stopped: 60 of 60 attempts are used; blastdoor resume goes on"


def test_it_leaves_when_nobody_works_on_it(stage: Stage) -> None:
    """What was written last is still seen."""
    written = len(stage.story.events)
    seen: list[e.Event] = []
    with open_campaign(stage.folder) as reading, ExitStack() as work:
        work.enter_context(stage.lock())
        watched = Watched(reading)

        def draw() -> None:
            if watched.holder and len(stage.story.events) == written:
                stage.story.attempt("1", 1.5)
                grow(stage, written)
                work.close()

        follow(watched, lambda _, event: seen.append(event), draw)
    assert isinstance(seen[-1], e.AttemptEnded)


def test_one_picture(stage: Stage) -> None:
    """With --once, and where nobody works on it, one picture is printed and that is all: no sequences in a pipe."""
    text = watch(stage.folder)
    assert "circle-packing" in text
    assert "best      score=2 at 1.1 (+1)" in text
    assert "it died at its work, and blastdoor resume goes on" in text
    assert "\x1b" not in text
    with stage.lock():
        once = watch("--once", stage.folder)
    assert "best      score=2 at 1.1 (+1)" in once
    assert "nobody works" not in once


def test_an_event_of_a_later_version(stage: Stage) -> None:
    """One line, not a guess."""
    with open_campaign(stage.folder) as reading, stage.lock():
        with Ledger.open(stage.campaign / "ledger.sqlite3") as ledger:
            ledger.seize("a later one")
            ledger.append([Entry("node dreamt", canonical({"kind": "node dreamt"}))], {}, stamp(utc_now()))
        with pytest.raises(Exception, match="is a node dreamt, which this version does not know"):
            list(Watched(reading).poll())


class Child:
    """`watch` in a terminal of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.master, slave = pty.openpty()
        words = [sys.executable, "-c", "from orchestrator.views.cli import main; main()", "watch", str(folder)]
        env = {**os.environ, "TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            words, cwd=ROOT, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.text = ""

    def until(self, wanted: str, seconds: float = 300.0) -> bool:
        end = time.monotonic() + seconds
        while wanted not in self.text and time.monotonic() < end:
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:  # the other end is closed, and all of it was read
                    break
        return wanted in self.text


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_put_right(stage: Stage, number: signal.Signals) -> None:
    """Ctrl-C, or a polite kill, leaves with 0; the usual screen and the cursor are back. NO_COLOR is heeded, and an
    ASCII locale gets ASCII.
    """
    plain = {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    with stage.lock():
        child = Child(stage.folder, **(plain if number is signal.SIGTERM else {}))
        assert child.until("1.1 kept"), child.text
        assert "\x1b[?1049h\x1b[?25l" in child.text
        child.process.send_signal(number)
        assert child.until("\x1b[?25h\x1b[?1049l"), child.text
        assert child.process.wait(300) == 0
    assert "Traceback" not in child.text
    if number is signal.SIGTERM:
        assert "\x1b[32m" not in child.text
        assert child.text.isascii()
