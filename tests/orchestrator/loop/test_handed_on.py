"""A large request that is handed on while it comes, and what happens in the middle of it: who pays, what is on record,
and that the next one comes over a channel of its own.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.wiring.beginning import How
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.relay_script import LARGE, RelayScript, judge, write_relay_task
from tests.orchestrator.loop.scripted import Point, Scripted, ran, scripted

STREAMS: Point = {"value": judge("streams")}
WHOLE = b"C" + encode(["solve", LARGE])


@dataclass
class Halfway(RelayScript):
    """`happens` when half of a request is on its way, so many `times`."""

    happens: Callable[[Guest], Awaitable[None]] | None = None
    left: int = 1

    async def halfway(self, guest: Guest) -> None:
        if self.happens and self.left:
            self.left -= 1
            await self.happens(guest)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_relay_task(tmp_path / "task")


def large(script: RelayScript) -> list[bytes]:
    return [request for request in script.requests if len(request) > 1 << 20]


def check_scored(session: Scripted, script: RelayScript) -> None:
    """One attempt is charged, nothing is reserved any more, and every request that came, came whole."""
    node = session.nodes["1.1"]
    assert (node.ending, session.charged) == (Ending.SCORED, 1)
    assert not session.accounts.holds
    assert set(large(script)) == {WHOLE}


def cut_off(times: int) -> Halfway:
    script = Halfway(left=times)
    script.happens = script.cut
    return script


def back_at_once(session: Scripted) -> None:
    def back(_: e.AttemptRequeued) -> None:
        assert session.charged == 0
        session.script.world.answers = True

    session.when(e.AttemptRequeued, back)


async def test_an_outage_in_the_middle(task: Path) -> None:
    """Nobody pays for it, and the same attempt is scored once the provider is back."""
    script = cut_off(1)
    async with scripted(task, script, STREAMS) as session:
        back_at_once(session)
        await session.run()
        (requeued,) = session.of(e.AttemptRequeued)
        assert (requeued.ending, session.state.trials["1.1-1"].ending) == (Ending.INFRASTRUCTURE,) * 2
        check_scored(session, script)


async def test_outages_without_end(tmp_path: Path) -> None:
    """They end the campaign as any others do: it gives up, and nothing is charged or held back."""
    task, script = write_relay_task(tmp_path / "task", "[stall]\nin_a_row = 3\nafter = 99\nrefunds = 99\n"), cut_off(99)
    async with scripted(task, script, STREAMS) as session:
        back_at_once(session)
        assert (await session.run()).gave_up
        assert [it.ending for it in session.of(e.AttemptRequeued)] == [Ending.INFRASTRUCTURE] * 3
        assert (session.charged, session.accounts.holds, large(script)) == (0, {}, [])


async def test_a_stop_in_the_middle(task: Path) -> None:
    """What both chambers cost until then is booked, the attempt waits, and a resume ends it as if nothing had been."""
    script = Halfway()
    async with scripted(task, script, STREAMS) as session:

        async def stop(guest: Guest) -> None:
            session.campaign.stop("a signal")
            await guest.stopped.wait()

        script.happens = stop
        await session.run()
        node, trial = session.nodes["1.1"], session.state.trials["1.1-1"]
        assert (node.phase, trial.ending, trial.judging) == (Phase.QUEUED, Ending.INTERRUPTED, None)
        assert (session.charged, node.booked, session.accounts.holds) == (0, node.spent, {})
        assert not script.world.chambers
    script = Halfway()
    session = await ran(task, script, STREAMS, how=How.RESUME)
    check_scored(session, script)


async def test_a_pause_in_the_middle(task: Path) -> None:
    """What is under way goes on to its end; nothing else begins until the pause is over."""
    script = Halfway()
    async with scripted(task, script, STREAMS, {"value": 3}) as session:

        async def pause(_: Guest) -> None:
            session.bench.book.record(e.PauseSet(paused=True))

        def over(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                assert session.state.campaign.paused
                assert [it.node for it in session.of(e.AttemptOpened)] == ["1", "1.1"]
                session.bench.book.record(e.PauseSet(paused=False))

        script.happens = pause
        session.when(e.AttemptEnded, over)
        await session.run()
        endings = [session.nodes[it].ending for it in ("1.1", "1.2")]
        assert (endings, session.charged) == ([Ending.SCORED] * 2, 2)
