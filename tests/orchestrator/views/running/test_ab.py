"""`blastdoor ab`: two ways to search on the same seeds and budget, stopped, gone on with, and told."""

import json
import os
import signal
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from orchestrator.budget import Account
from orchestrator.domain.ab import Outcome, Scale, Versus
from orchestrator.domain.metric import Goal
from orchestrator.domain.records import Role
from orchestrator.views.campaign.sections.ab import attempts_to_target, to_target
from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.running import ab, session
from orchestrator.wiring.ab import read_asked
from orchestrator.wiring.reading import read_campaign
from orchestrator.wiring.resuming import CannotOpen
from orchestrator.wiring.site import Site
from tests.clicking import runner
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import make_site, write_task
from tests.started import Started

SIDES = ("--a", "proposer=grid", "--b", "proposer=random")
ASKED = (*SIDES, "--attempts", "2", "--seeds", "2", "--rate", "1000/s")


@pytest.fixture
def script() -> Script:
    return Script()


def scripted_site(script: Script) -> Any:
    @asynccontextmanager
    async def site(*_: object) -> AsyncIterator[Site]:
        made = make_site(script)
        try:
            yield made
        finally:
            await made.backend.close()

    return site


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script) -> Path:
    """A task whose chambers are scripted, wherever they are asked for."""
    monkeypatch.setattr(session, "open_site", scripted_site(script))
    return write_task(tmp_path / "task")


def blastdoor(*words: str | Path) -> Result:
    return runner().invoke(cli, [str(word) for word in words])


def interrupted_after(script: Script, judgings: int, words: list[str]) -> Result:
    """A signal comes when the judge is asked that often."""

    async def interrupt(_: object) -> None:
        if script.commands.count("judge") == judgings:
            script.on_open = None
            os.kill(os.getpid(), signal.SIGINT)

    script.on_open = interrupt
    ran = runner().invoke(cli, words, standalone_mode=False)
    assert ran.return_value == Exit.INTERRUPTED
    return ran


def told(*words: str | Path) -> Any:
    ran = blastdoor(*words, "--json")
    assert ran.exception is None, ran.output
    return json.loads(ran.stdout)


def sessions(folder: Path, name: str) -> int:
    """How often a campaign was worked on."""
    with read_campaign(folder / ".blastdoor" / "ab" / name) as reading:
        return reading.state.campaign.epoch


def test_a_comparison(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides of a pair have its seed and the same budget, each in a campaign of its own; the report is the same
    answer in Markdown and JSON. The total is said before it starts; a dry run says no more and leaves nothing. What a
    campaign came to when it ended is what counts, whatever is done with it by hand afterwards.
    """
    with monkeypatch.context() as priced:
        priced.setenv("BLASTDOOR_USD_PER_HOUR", "$3.6")
        ran = blastdoor("ab", folder, *ASKED, "--usd", "2", "--dry-run")
    assert "4 campaigns of at most 2 attempts each, 8 in all, $" in ran.stderr
    assert float(ran.stderr.split("$")[1].split()[0]) <= 8
    assert not (folder / ".blastdoor").exists()
    found, place = told("ab", folder, *ASKED), folder / ".blastdoor" / "ab"
    for name, proposer, seed in [("01a", "grid", 0), ("01b", "random", 0), ("02a", "grid", 1), ("02b", "random", 1)]:
        with read_campaign(place / name) as reading:
            run = reading.state.run
            assert (run.proposer, run.seed) == (proposer, seed)
            assert reading.state.count(Role.SEARCH) == 2
    assert (found["open"], [it["seed"] for it in found["pairs"]]) == (0, [0, 1])
    ends = [[it["a"]["steps"][-1][1], it["b"]["steps"][-1][1]] for it in found["pairs"]]
    assert found["difference"]["typical"] == pytest.approx(statistics.mean(b - a for a, b in ends))
    assert told("report", place) == found
    text = blastdoor("report", place).output
    for part in ("# Comparison on `scripted`", "## Which is better", "| pair | seed |"):
        assert part in text
    assert blastdoor("resume", "--attempts", "9", place / "01a").exit_code == 0
    assert blastdoor("run", "--new-run", "--proposer", "grid", "--attempts", "1", place / "01a").exit_code == 0
    assert told("ab", folder) == found
    assert told("report", place)["pairs"] == found["pairs"]


def test_a_search_that_learns_beside_one_that_does_not(folder: Path) -> None:
    """--arms says how each side learns; it is on record in each campaign, and all else is the same."""
    found = told("ab", folder, "--arms", "off,gradient", "--attempts", "2", "--seeds", "1", "--rate", "1000/s")
    options = []
    for name in ("01a", "01b"):
        with read_campaign(folder / ".blastdoor" / "ab" / name) as reading:
            options.append(json.loads(reading.state.run.options))
            assert reading.state.count(Role.SEARCH) == 2
    assert [it.pop("meta") for it in options] == ["off", "gradient"]
    assert options[0] == options[1]
    assert found["open"] == 0


def test_a_signal_ends_it_and_the_same_command_goes_on(folder: Path, script: Script) -> None:
    """What ended is not run again, what was open goes on with its own attempts, and nothing is concluded before."""
    ran = interrupted_after(script, 10, ["ab", str(folder), *ASKED])
    again = f"blastdoor ab {folder}"
    assert f"`{again}` goes on" in ran.stderr
    assert f"{again} goes on" in " ".join(ran.stdout.split())
    halfway = told("report", folder / ".blastdoor" / "ab")
    assert (halfway["open"], halfway["difference"]["p"]) == (1, None)
    over = read_asked(folder / ".blastdoor" / "ab")
    assert over
    open_one = next(it.name for it in over.turns() if it.name not in over.ended)
    before = {name: sessions(folder, name) for name in over.ended}
    assert told("ab", folder)["open"] == 0
    assert {name: sessions(folder, name) for name in before} == before
    assert sessions(folder, open_one) == 2


def dies() -> None:
    """In a process of its own: a comparison that ends in the middle of its third campaign, without a word."""
    script = Script()

    async def die(_: object) -> None:
        if script.commands.count("judge") == 10:
            os.kill(os.getpid(), signal.SIGKILL)

    script.on_open = die
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "open_site", scripted_site(script))
        cli.main(sys.argv[1:], standalone_mode=False)


def test_killed_in_the_middle(folder: Path, on_disk: None) -> None:
    """A process that dies leaves what was asked, and which campaigns ended; the next goes on with the open one."""
    with Started("ab", folder, *ASKED, program=f"{__name__}:dies") as started:
        assert started.wait() == -signal.SIGKILL
    over = read_asked(folder / ".blastdoor" / "ab")
    assert over
    assert len(over.ended) == 2
    found = told("ab", folder, *ASKED)
    assert found["open"] == 0
    assert [sessions(folder, name) for name in over.ended] == [1, 1]
    counts = [sessions(folder, it.name) for it in over.turns()]
    assert sorted(counts) == [1, 1, 1, 2]
    with read_campaign(folder / ".blastdoor" / "ab" / "02b") as reading:
        assert reading.accounts.used(Account.ATTEMPTS) == 2


def test_a_campaign_that_is_gone_on_with_too_early(folder: Path, script: Script) -> None:
    """An open one has the caps of the comparison again; what it had beyond them is said."""
    interrupted_after(
        script, 2, ["ab", str(folder), "--a", "", "--b", "proposer=random", "--attempts", "2", "--seeds", "1"]
    )
    (begun,) = [it for it in (folder / ".blastdoor" / "ab").iterdir() if (it / "ledger.sqlite3").exists()]
    assert blastdoor("resume", "--attempts", "4", begun).exit_code == 0
    found = told("ab", folder)
    assert found["pairs"][0][begun.name[2]]["attempts"] == 4
    assert any(f"{begun.name} had 4 where the budget is 2 attempts" in it for it in found["doubts"])
    with read_campaign(begun) as reading:
        assert json.loads(reading.state.run.options)["attempts"] == 2


def test_who_begins_is_known_beforehand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coin is thrown for each pair and written down before the first campaign; they run in that order."""
    seen: list[str] = []

    async def work(wanted: session.Wanted) -> Any:
        assert wanted.folder
        assert read_asked(wanted.folder.parent)
        seen.append(wanted.folder.name)
        raise CannotOpen("enough") if len(seen) == 6 else session.NoBaseline("no")

    monkeypatch.setattr(ab, "work", work)
    monkeypatch.setattr(ab, "refuse_hopeless", lambda _: None)
    blastdoor("ab", folder, *SIDES, "--seeds", "3")
    asked = read_asked(folder / ".blastdoor" / "ab")
    assert asked
    assert seen == [it.name for it in asked.turns()]
    assert [seen[0][2], seen[2][2], seen[4][2]] == list(asked.first)


def test_a_side_that_fails_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign without a baseline loses its pair, with its reason; no pair is dropped."""
    real = session.work

    async def work(wanted: session.Wanted) -> Any:
        finished = await real(wanted)
        if wanted.folder and wanted.folder.name == "02b":
            raise session.NoBaseline("the baseline of run 1 ended as failed: exit code 3")
        return finished

    monkeypatch.setattr(ab, "work", work)
    found = told("ab", folder, *ASKED)
    assert found["pairs"][1]["b"]["failed"].startswith("the baseline of run 1")
    assert found["difference"]["a_better"] >= 1
    assert any("02b failed, and counts as worse than any score" in it for it in found["doubts"])
    assert sum(found["difference"][it] for it in ("a_better", "b_better", "equal")) == 2


def test_a_task_that_does_not_work(folder: Path, script: Script) -> None:
    """Where neither side of the first pair comes to a score, it ends there, with what is wrong."""
    script.judge_is_broken = True
    ran = blastdoor("ab", folder, *ASKED)
    assert isinstance(ran.exception, CannotOpen)
    assert "neither side came to a score" in str(ran.exception)
    asked = read_asked(folder / ".blastdoor" / "ab")
    assert asked
    assert sorted(asked.ended) == ["01a", "01b"]


def test_what_is_compared_is_the_search(folder: Path) -> None:
    """Review, questions, combinations and minimising are off, whatever the task says; a side may have arms. Another
    comparison needs another folder: a resume that asks for anything else is refused in one line that names both ways
    out; so is a changed task.
    """
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text() + "[search]\nreview = true\nask = true\n")
    words = ("--a", "proposer=hybrid arms=random,operators", "--b", "", "--seeds", "1", "--attempts", "1")
    found = told("ab", folder, *words)
    assert (found["open"], found["sides"]["a"]["arms"]) == (0, "random,operators")
    for other in [(*SIDES, "--attempts", "2"), ("--seeds", "3"), ("--a", "proposer=grid", "--b", "proposer=tpe")]:
        ran = blastdoor("ab", folder, *other)
        assert ran.exit_code == 2
        assert f"go on with blastdoor ab {folder}, or name another --folder" in " ".join(ran.output.split())
    notes = folder / "workspace" / "notes.txt"
    notes.write_text("something else\n")
    changed = blastdoor("ab", folder)
    assert isinstance(changed.exception, CannotOpen)
    assert "its workspace changed; put it back" in str(changed.exception)
    place = folder / ".blastdoor" / "ab" / "ab.json"
    place.write_text("{}")
    assert "is not what blastdoor ab wrote" in str(blastdoor("ab", folder, *SIDES).exception)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "say what to compare: --arms A,B, or --a"),
        (["--a", "width=2"], "give both --a and --b"),
        (["--a", "proposr=tpe", "--b", ""], "--a: there is no option proposr; did you mean proposer?"),
        (["--a", "xyzzy=1", "--b", ""], "--a: there is no option xyzzy; options are proposer, "),
        (["--a", "proposer=magic", "--b", ""], '--a: proposer: must be "grid", "random"'),
        (["--a", "", "--b", "width=0"], "--b: width: 0 is not in the range x>=1"),
        (["--a", "", "--b", "selection=best"], '--b: selection: must be "champion", "tasks"'),
        (["--a", "tpe", "--b", ""], "--a: tpe has no value; write it like proposer=tpe"),
        (["--a", "attempts=3", "--b", ""], "attempts cannot differ between the sides; say --attempts"),
        (["--a", "backend=modal", "--b", ""], "backend cannot differ between the sides; say --backend"),
        (["--a", "review=on", "--b", ""], "review is off in a comparison"),
        (["--arms", "off"], "--arms takes two names with a comma between them"),
        (["--arms", "off,magic"], "--b: meta: 'magic' is not one of 'off', 'lift', 'gradient'"),
        (["--arms", "off,gradient", "--a", "width=2"], "--arms says both sides already"),
        (["--a", "", "--b", "", "--seeds", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_compared(folder: Path, words: list[str], line: str) -> None:
    """One line that says what to write, exit code 2, and nothing is begun."""
    ran = blastdoor("ab", folder, *words)
    assert ran.exit_code == 2
    assert line in " ".join(ran.output.split())
    assert not (folder / ".blastdoor").exists()


def test_no_target_to_count_to() -> None:
    """Where nothing gets beyond the baseline, no attempts are counted, and nothing is said to have never got there."""
    found: Any = SimpleNamespace(found=Versus(None, "", None, None, None, is_baseline=True))
    assert "gets no further than the baseline; --target names one to count to" in str(to_target(found).line)
    assert attempts_to_target(Outcome(steps=((0, 1.0),)), None, Scale("score", Goal.HIGHER)) == ""
