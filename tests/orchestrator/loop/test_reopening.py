"""Opening a campaign that is there: as it was, with other caps, as a new run, or not at all."""

from pathlib import Path
from typing import Any

import pygit2
import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.git import GitError
from orchestrator.ledger import Fenced, Full, Ledger, LedgerError, Replaced
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import read_campaign
from orchestrator.wiring.resuming import CannotOpen
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import WALL_S, Point, ran, scripted, write_task

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9)]


async def test_changed_task(tmp_path: Path) -> None:
    """A task that changed is not resumed: the key that differs is named, and what helps. Files that changed behind its
    back are found by their digest.
    """
    folder = write_task(tmp_path / "task")
    (folder / "judge" / "gold").mkdir()
    (folder / "judge" / "gold" / "a").write_text("gold")
    await ran(folder, None, {"value": 1})
    for name, before, after, told in (
        ("blastdoor.toml", 'command = ["judge"]', 'command = ["judge", "-v"]', "judge.command.*--new-run"),
        ("blastdoor.toml", "high = 12", "high = 13", "parameters.space.value.high.*--new-run"),
        ("blastdoor.toml", f'wall = "{WALL_S}s"', 'wall = "61s"', "wall.*--new-run"),
        ("workspace/notes.txt", "nothing", "something", "the files of workspace"),
        ("judge/judge.txt", "one", "another", "the files of judge"),
        ("judge/gold/a", "gold", "lead", "the files of gold"),
    ):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(before, after, 1))
        with pytest.raises(CannotOpen, match=told):
            await ran(folder, None, {"value": 1}, how=How.RESUME)
        (folder / name).write_text(text)


async def test_changed_budget(folder: Path) -> None:
    """How much and how fast may change while a run goes on. With less than was used already nothing is opened, which is
    said; after a resume that raised a cap, the next one without a flag does not fall over the old value.
    """
    await ran(folder, None, *POINTS, attempts=3)
    assert (await ran(folder, None, *POINTS, how=How.RESUME, attempts=2)).reason == "3 of 2 attempts are used"
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text() + "\n[budget]\npatience = 30\n\n[stall]\nafter = 7\n")
    assert (await ran(folder, None, *POINTS, how=How.RESUME, attempts=4)).reason == "4 of 4 attempts are used"
    session = await ran(folder, None, *POINTS, how=How.RESUME)
    assert (session.reason, session.charged) == ("4 of 4 attempts are used", 4)


async def test_new_run(folder: Path) -> None:
    """A new run starts from the workspace with attempts of its own; what the old one left is cancelled."""
    session = await ran(folder, None, {"value": 3}, {"value": 1, "do": "wait"}, stop=(e.TrialIntended, 4))
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace("high = 12", "high = 20"))
    session = await ran(folder, None, {"value": 15}, attempts=1, how=How.NEW_RUN)
    finished = session.ends[-1]
    state = session.state
    assert [name for name in state.nodes if run_of(name) == 2] == ["2", "2.1"]
    assert state.nodes["1.2"].ending is Ending.CANCELLED
    assert finished.champion == state.nodes["2.1"]
    assert session.reason == "1 of 1 attempt is used" or "attempt" in session.reason
    assert session.charged == 2
    champion = state.champion(state.runs["1"])
    assert champion is not None
    assert champion.id == "1.1"


async def test_new_run_from_a_node(folder: Path) -> None:
    """A new run can begin with an earlier node's files; a resume of it does, too."""
    await ran(folder, None, {"value": 3})
    session = await ran(
        folder, None, {"value": 5, "do": "wait"}, how=How.NEW_RUN, start="1.1", stop=(e.TrialIntended, 2)
    )
    verdict = session.nodes["2"].verdict
    assert verdict is not None
    assert verdict.metrics == {"score": 3.0}
    script = Script()
    script.gate.set()
    session = await ran(folder, script, {"value": 5}, how=How.RESUME)
    assert session.nodes["2.1"].kept


async def test_new_run_after_a_crash(folder: Path) -> None:
    """A new run right after a session that never ended closes what that one had open."""
    await die_at_trial(folder, "1.1")
    session = await ran(folder, None, {"value": 4}, how=How.NEW_RUN)
    assert session.nodes["1.1"].ending is Ending.CANCELLED
    assert not session.accounts.holds


@pytest.mark.usefixtures("on_disk")
async def test_new_run_that_did_not_begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a new run is on record, the old one can be resumed with all that it had."""
    await die_at_trial(folder, "1.1")
    append = Ledger.append

    def full(ledger: Ledger, entries: Any, *args: Any) -> Any:
        if any(entry.kind == "run started" for entry in entries):
            raise Full(folder)
        return append(ledger, entries, *args)

    monkeypatch.setattr(Ledger, "append", full)
    with pytest.raises(Full):
        async with scripted(folder, None, {"value": 4}, how=How.NEW_RUN):
            pass
    monkeypatch.undo()
    script = Script()
    script.gate.set()
    session = await ran(folder, script, {"value": 3}, how=How.RESUME)
    assert session.champion == "1.1"


async def test_lower_cap_for_a_new_run(folder: Path) -> None:
    """Money is the campaign's: a new run with less than was spent opens nothing, and says why."""
    session = await ran(folder, None, {"value": 3, "takes": 0.05})
    session = await ran(folder, None, {"value": 4}, how=How.NEW_RUN, seconds=0.01)
    assert "seconds" in session.reason


async def die_at_trial(folder: Path, node: str) -> None:
    """A session that is cut off from its ledger while a trial runs, and so leaves it open there."""
    async with scripted(folder, None, {"value": 3, "do": "wait"}) as session:

        def die(event: e.TrialIntended) -> None:
            if event.node == node:
                with Ledger.open(session.bench.book.ledger.where) as other:
                    other.seize("another")
                session.campaign.stop("over")

        session.when(e.TrialIntended, die)
        with pytest.raises(Fenced):
            await session.run()


async def test_can_not_be_opened(folder: Path) -> None:
    """What cannot be opened as asked is refused before anything is written; where there is no campaign, only `run`
    starts one.
    """
    for how in (How.RESUME, How.NEW_RUN):
        with pytest.raises(CannotOpen, match="no campaign"):
            await ran(folder, None, {"value": 1}, how=how)
    async with scripted(folder, None, {"value": 3}, {"value": 0}) as session:
        await session.run()
        head = session.bench.book.ledger.head()
    refused = ((How.START, None, CannotOpen), (How.NEW_RUN, "1.9", CannotOpen), (How.NEW_RUN, "1.2", GitError))
    for how, start, error in refused:
        with pytest.raises(error):
            await ran(folder, None, {"value": 4}, how=how, start=start)
        with read_campaign(folder) as reading:
            assert reading.head == head


async def test_task_that_is_wrong(folder: Path) -> None:
    """A task file that cannot be read stops the command before anything is made."""
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text() + "\n[nonsense]\n")
    with pytest.raises(TaskError):
        async with scripted(folder, None, {"value": 1}):
            pass
    assert not (folder / ".blastdoor").exists()


async def test_damaged_ledger(folder: Path) -> None:
    """A ledger that is no ledger is refused with a line of its own."""
    (folder / ".blastdoor").mkdir()
    path = folder / ".blastdoor" / "ledger.sqlite3"
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(LedgerError):
        async with scripted(folder, None, {"value": 1}):
            pass
    path.unlink()


async def test_live_logs_of_the_dead(folder: Path) -> None:
    """What a killed session left of its live logs is gone when the next one opens."""
    await ran(folder, None, {"value": 1})
    stale = folder / ".blastdoor" / "live" / "1.1-1.log"
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("half a line")
    async with scripted(folder, None, {"value": 1}, how=How.RESUME) as session:
        assert not stale.exists()
        await session.run()


async def test_t99_a_branch_that_was_moved(folder: Path) -> None:
    """A run begins with the commit that is on record for a node, wherever the branch of that name points by now."""
    session = await ran(folder, None, {"value": 3})
    found = session.nodes["1.1"].commit
    branches = folder / ".blastdoor/candidates.git/refs/heads"
    (branches / "1.1").write_bytes((branches / "1").read_bytes())
    async with scripted(folder, None, {"value": 5}, how=How.NEW_RUN, start="1.1") as session:
        assert found
        assert session.bench.root == session.bench.candidates.read(found)


@pytest.mark.usefixtures("on_disk")
async def test_a_ledger_of_an_earlier_day(folder: Path) -> None:
    """One that was put back lacks what was done since; who knows better says so, and goes on from there."""
    kept = folder / ".blastdoor"
    await ran(folder, None, {"value": 3}, attempts=1)
    earlier = (kept / "ledger.sqlite3").read_bytes()
    async with scripted(folder, None, {"value": 3}, {"value": 5}, how=How.RESUME, attempts=2) as session:
        await session.run()
        last = session.bench.book.ledger.head()
    (kept / "ledger.sqlite3").write_bytes(earlier)
    with pytest.raises(Replaced, match=f"lacks record {last.seq}, which was written from here"):
        async with scripted(folder, None, {"value": 5}, how=How.RESUME, attempts=2):
            pass
    (kept / "head.json").unlink()
    pygit2.Repository(kept / "candidates.git").branches.delete("1.2")
    async with scripted(folder, None, {"value": 3}, {"value": 9}, how=How.RESUME, attempts=2) as session:
        assert session.nodes.keys() == {"1", "1.1"}
        await session.run()
        assert session.nodes["1.2"].params == {"value": 9}
