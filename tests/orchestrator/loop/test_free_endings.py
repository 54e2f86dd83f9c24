"""Free endings: who proves that an ending was not the candidate's, how often it is believed, and what it cost."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase
from orchestrator.proposers import Brief, Stalled
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job, Unavailable
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import GUARD, Act, Point, Scripted, Virtual, proposal, ran, scripted, write_task


def stalling(times: int) -> Act:
    """A proposer that gives no sign of life for some times, then proposes."""
    left = times

    async def act(brief: Brief) -> Sequence[Proposal]:
        nonlocal left
        left -= 1
        if left >= 0:
            raise Stalled("no token for 30 s")
        return [proposal({"value": 5})]

    return act


async def test_stall_is_requeued(folder: Path) -> None:
    """A stalled attempt is refunded and tried again after a back-off that doubles; what it finds then counts once."""
    session = await ran(folder, None, stalling(2), {"value": 1})
    node = session.nodes["1.1"]
    assert [event.ending for event in session.of(e.AttemptRequeued)] == [Ending.STALLED] * 2
    first, second = session.clock.waits
    assert 0.5 <= first < 1 <= second < 2
    assert (node.ending, node.take, node.stalls) == (Ending.SCORED, 3, 2)
    assert (session.charged, session.accounts.losses.endings) == (2, 2)


async def test_quarantine_and_release(folder: Path) -> None:
    """One that stalls again and again is set aside uncharged; a release lets it out, its stalls forgotten."""
    act = stalling(3)
    session = await ran(folder, None, act, {"value": 1})
    node = session.nodes["1.1"]
    assert (node.phase, node.ending) == (Phase.QUARANTINED, Ending.STALLED)
    assert len(session.of(e.AttemptRequeued)) == 2
    assert (session.nodes["1.2"].ending, session.charged) == (Ending.SCORED, 1)
    ask(folder, "release", {"node": "1.1"})
    session = await ran(folder, None, act, {"value": 1}, how=How.RESUME)
    node = session.nodes["1.1"]
    assert (node.phase, node.ending, node.stalls) == (Phase.ENDED, Ending.SCORED, 0)
    assert session.of(e.RequestTaken)[0].answer == "queued again"


def test_silent_proposer(tmp_path: Path, virtual: Virtual) -> None:
    """A proposer that hangs is a stall after the deadline of its phase."""
    folder = write_task(tmp_path / "task", '[stall]\npropose = "0.05s"\nafter = 1\n')

    async def hang(_: Brief) -> Sequence[Proposal]:
        await asyncio.sleep(60)
        return []

    node = virtual.run(ran(folder, None, hang, {"value": 1})).nodes["1.1"]
    assert (node.phase, node.ending) == (Phase.QUARANTINED, Ending.STALLED)
    assert "no proposal within" in node.why


async def test_proposer_that_offers_nothing(folder: Path) -> None:
    """An empty offer is a stall, not an endless loop."""

    async def nothing(_: Brief) -> Sequence[Proposal]:
        return []

    session = await ran(folder, None, nothing, {"value": 1})
    assert [session.nodes[name].ending for name in ("1.1", "1.2")] == [Ending.STALLED, Ending.SCORED]


def test_no_chamber_in_time(tmp_path: Path, virtual: Virtual) -> None:
    """A provider that takes longer than its deadline stalls the attempt before delivery: free."""
    folder = write_task(tmp_path / "task", '[stall]\nprovision = "2s"\n')
    opened = 0

    async def on_open(job: Job) -> None:
        nonlocal opened
        opened += job.command[0] == "trial"
        if opened == 2:
            opened += 1
            await asyncio.sleep(60)

    session = virtual.run(ran(folder, Script(on_open=on_open), {"value": 1}))
    (requeued,) = session.of(e.AttemptRequeued)
    assert (requeued.ending, session.charged, session.nodes["1.1"].ending) == (Ending.STALLED, 1, Ending.SCORED)


@pytest.mark.parametrize("command", ["trial", "judge", "guard"])
async def test_no_chamber_is_free(tmp_path: Path, command: str) -> None:
    """In every phase; while the attempt waits nothing of it is under way, so no time is booked that nobody spent."""
    folder = write_task(tmp_path / "task", GUARD)
    script = failing(2, command, after=0 if command == "guard" else 1)
    async with scripted(folder, script, {"value": 3}) as session:

        def look(_: e.Event) -> None:
            assert session.nodes["1.1"].guarding is None
            assert all(trial.judging is None for trial in session.state.trials_of("1.1"))
            session.clock.skip(1000)

        session.when(e.AttemptRequeued, look)
        await session.run()
    node = session.nodes["1.1"]
    assert [event.ending for event in session.of(e.AttemptRequeued)] == [Ending.INFRASTRUCTURE] * 2
    assert (node.ending, node.kept, session.charged, node.guarding) == (Ending.SCORED, True, 1, None)
    assert node.spent.milliseconds < 100_000


def comes_back(session: Scripted) -> None:
    """A provider that is down is back as soon as the attempt that was there when it went down has ended."""

    def back(_: e.Event) -> None:
        session.script.world.answers = True

    session.when(e.AttemptRequeued, back)
    session.when(e.AttemptQuarantined, back)


async def test_t80_refunds_of_a_lineage_are_capped(tmp_path: Path) -> None:
    """One that takes the engine down each time is set aside, though a control job passes before."""
    folder = write_task(tmp_path / "task", "[stall]\nrefunds = 3\nafter = 99\n")
    async with scripted(folder, None, {"value": 3, "do": "cut"}) as session:
        comes_back(session)
        await session.run()
        node = session.nodes["1.1"]
        assert (node.phase, node.trials) == (Phase.QUARANTINED, 3)
        assert "lineage" in node.why
        assert (session.charged, session.state.campaign.refunds) == (0, {"1.1": 3})
        # What refunded attempts spent stays spent, and is booked as stall losses.
        accounts = session.accounts
        assert (accounts.losses.endings, accounts.losses.seconds) == (3, node.spent.milliseconds)
        assert accounts.used(Account.SECONDS) > accounts.losses.seconds


async def test_refunds_are_counted_along_the_lineage(tmp_path: Path) -> None:
    """A child does not start with a clean slate: what its branch was refunded counts for it too."""
    folder = write_task(tmp_path / "task", "[stall]\nrefunds = 2\nafter = 99\n")
    parent: Point = {"value": 3, "do": "cut", "then": '{"do": "answer"}'}
    child: Point = {"value": 4, "do": "cut", "then": '{"do": "cut"}'}
    async with scripted(folder, None, parent, child, branching=True, depth=2, attempts=2) as session:
        comes_back(session)
        await session.run()
        assert session.nodes["1.1"].ending is Ending.SCORED
        found = session.nodes["1.1.1"]
        assert (found.phase, found.trials) == (Phase.QUARANTINED, 2), "the second time, a control job had passed before"


async def test_baseline_without_a_provider(folder: Path) -> None:
    """A provider that never answers ends the campaign with a line that says so, and a resume goes on."""
    script = Script()
    script.world.answers = False
    async with scripted(folder, script, {"value": 3}) as session:
        with pytest.raises(Unavailable, match=r"told not to answer; given up after 3.. s, blastdoor resume goes on"):
            await session.run()
        assert "given up" in session.state.campaign.stopped
    script.world.answers = True
    assert (await ran(folder, script, {"value": 3}, how=How.RESUME)).champion == "1.1"
