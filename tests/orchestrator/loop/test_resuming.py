"""Stopping and going on: nothing is lost, nothing is paid twice, and nobody else can work on it meanwhile."""

import asyncio
import gc
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode
from orchestrator.ledger import Entry, Fenced, Full, Held, Ledger
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import read_campaign
from sandbox import Job, Refused
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, TUNE, Point, Scripted, ran, scripted, worst_of, write_task

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9)]
DRAFTS: list[list[Point]] = [[{"value": n, "tuned": -n}, {"value": n + 1, "tuned": 1}] for n in range(1, 9, 2)]


def verdicts(state: State) -> dict[str, tuple[object, object, bool]]:
    return {name: (node.params, node.verdict, node.kept) for name, node in state.nodes.items()}


@pytest.mark.parametrize(
    ("width", "kinds"),
    [
        (1, (e.Proposed, e.TrialIntended, e.JudgingIntended, e.GuardIntended, e.AttemptEnded)),
        (3, (e.AttemptOpened, e.Promoted, e.TrialEnded, e.JudgingEnded, e.GuardEnded)),
    ],
)
async def test_stop_and_resume(tmp_path: Path, width: int, kinds: tuple[type[e.Event], ...]) -> None:
    """Stopped in whichever phase, a resume finishes with the verdicts of a campaign that nobody disturbed."""
    flags: dict[str, Any] = {"width": width, "attempts": 4}
    expected = verdicts((await ran(write_task(tmp_path / "calm", TUNE, GUARD), None, *DRAFTS, **flags)).state)
    for kind in kinds:
        folder = write_task(tmp_path / kind.__name__, TUNE, GUARD)
        async with scripted(folder, None, *DRAFTS, **flags) as session:
            session.stop_at(kind, 2)
            assert (await session.run()).reason == "Ctrl-C"
            assert not session.accounts.holds
            assert all(node.phase is not Phase.OPEN for node in session.nodes.values())
            ended = [node for name, node in session.nodes.items() if name != "1" and node.phase is Phase.ENDED]
            assert session.charged == len(ended)
        session = await ran(folder, None, *DRAFTS, how=How.RESUME)
        found = verdicts(session.state)
        assert found == expected if width == 1 else True, kind
        assert {name: it[:2] for name, it in found.items()} == {name: it[:2] for name, it in expected.items()}, kind
        assert (session.charged, session.accounts.used(Account.TUNES)) == (4, 8)


def points_of(session: Scripted) -> list[object]:
    return [node.params for node in sorted(session.nodes.values(), key=lambda node: node.number)]


async def test_a_sampler_goes_on_as_it_would_have(tmp_path: Path) -> None:
    """Attempt for attempt the points of a campaign that nothing stopped, until all are tried, which is said."""
    whole, cut = write_task(tmp_path / "whole", high=12), write_task(tmp_path / "cut", high=12)
    flags: dict[str, Any] = {"proposer": "tpe", "attempts": 50, "width": 1}
    session = await ran(whole, None, **flags)
    assert (session.reason, session.charged) == ("all 12 points of the space are tried", 12)
    wanted = points_of(session)
    session = await ran(cut, None, **flags, stop=(e.AttemptEnded, 9))
    assert points_of(await ran(cut, None, how=How.RESUME)) == wanted
    assert len({str(point) for point in wanted}) == 13


async def test_interrupted_attempt(folder: Path) -> None:
    """What was under way at the stop is interrupted and refunded; its time is spent, and is no stall loss."""
    session = await ran(folder, None, {"value": 1, "do": "wait"}, stop=(e.TrialIntended, 2))
    node, trial = session.nodes["1.1"], session.state.trials["1.1-1"]
    assert (node.phase, node.ending) == (Phase.QUEUED, Ending.INTERRUPTED)
    assert trial.ending is Ending.INTERRUPTED
    accounts = session.accounts
    assert (accounts.used(Account.ATTEMPTS), accounts.losses.endings) == (0, 0)
    assert accounts.used(Account.SECONDS) > node.spent.milliseconds > 0
    assert session.state.campaign.refunds == {}


async def test_late_resume(folder: Path) -> None:
    """However late a resume comes, a trial that was under way at a crash is booked at its worst case at most."""
    await ran(folder, None, {"value": 1})
    with Ledger.open(folder / ".blastdoor" / "ledger.sqlite3") as ledger:
        assert ledger.holder()[0] == 1
    async with scripted(folder, None, {"value": 1}, {"value": 2, "do": "wait"}, how=How.RESUME) as session:
        session.when(e.TrialIntended, lambda _: session.clock.skip(10**6))
        session.stop_at(e.TrialIntended, 1)
        await session.run()
        spent = session.state.trials["1.2-1"].spent.milliseconds
        assert spent == worst_of(session.bench.door, session.bench.jobs.trial(Mode.SUBMIT)).milliseconds


async def test_two_at_once(folder: Path) -> None:
    """A second orchestrator is turned away while one works, and told who it is."""
    async with scripted(folder, None, {"value": 1}) as session:
        with pytest.raises(Held, match="pid"):
            async with scripted(folder, None, {"value": 1}, how=How.RESUME):
                pass
        with read_campaign(folder) as reading:
            assert reading.holder is not None
        await session.run()
    with read_campaign(folder) as reading:
        assert reading.holder is None


async def test_taken_over(folder: Path) -> None:
    """One that was replaced behind its back writes nothing more, and says why it ends."""
    async with scripted(folder, None, *POINTS) as session:

        def seize(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                with Ledger.open(session.bench.book.ledger.where) as other:
                    other.seize("another")

        session.when(e.AttemptEnded, seize)
        with pytest.raises(Fenced):
            await session.run()
    with Ledger.open(folder / ".blastdoor" / "ledger.sqlite3") as ledger:
        assert {record.epoch for record in ledger.read()} == {1}


@pytest.mark.parametrize("after", [3, 28])
async def test_full_disk(folder: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that cannot be written ends the session with that reason; a resume goes on where it was."""
    async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
        append, count = session.bench.book.ledger.append, 0

        def full(entries: Sequence[Entry], *args: Any) -> Any:
            nonlocal count
            count += len(entries)  # how many are written at once depends on the disk
            if count > after:
                raise Full(folder)
            return append(entries, *args)

        monkeypatch.setattr(session.bench.book.ledger, "append", full)
        with pytest.raises(Full):
            await session.run()
    session = await ran(folder, None, *POINTS, how=How.RESUME)
    finished = session.ends[-1]
    assert finished.champion is not None
    assert finished.champion.params == {"value": 9}
    assert session.charged == 5


async def test_full_for_all(folder: Path) -> None:
    """Outputs find no room, then the ledger neither: one error ends the session, and asyncio prints no other."""
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    with pytest.raises(Full):
        await _full_for_all(folder)
    gc.collect()
    assert not unheard
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        assert (await session.run()).champion is not None


async def _full_for_all(folder: Path) -> None:
    both = threading.Barrier(2)
    async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
        bench = session.bench

        def full(*_: Any) -> Any:
            raise Full(folder)

        def one_after_the_other(_: object) -> Any:
            if both.wait(30):
                while not bench.book.is_broken:
                    time.sleep(0.01)
            full()

        session.when(e.AttemptEnded, lambda _: setattr(bench.artifacts, "keep_files", one_after_the_other))
        session.when(e.KillIntended, lambda _: setattr(bench.book.ledger, "append", full))
        await session.run()


@pytest.mark.parametrize("phase", ["propose", "trial", "judge"])
async def test_our_own_failure(tmp_path: Path, phase: str) -> None:
    """A fault of ours ends the session with its own error; nothing stays reserved, and a resume goes on."""
    folder = write_task(tmp_path / "task", GUARD)
    script = Script()

    async def broken(_: Brief) -> Any:
        raise RuntimeError("a fault of the proposer")

    async def on_open(job: Job) -> None:
        if job.command[0] == phase and len(script.commands) >= 2:
            raise Refused("a fault of the job")

    script.on_open = on_open
    first: Any = broken if phase == "propose" else {"value": 3}
    async with scripted(folder, script, first, {"value": 1}, width=2) as session:
        with pytest.raises(RuntimeError if phase == "propose" else Refused, match="a fault of"):
            await session.run()
        assert not session.accounts.holds
        # What we refuse is a reason to stop; what nobody foresaw is a death, and looks like one.
        assert session.state.campaign.stopped == ("" if phase == "propose" else "a fault of the job")
    session = await ran(folder, None, {"value": 3}, {"value": 1}, how=How.RESUME)
    assert session.champion == "1.1"
    assert session.charged == 2
