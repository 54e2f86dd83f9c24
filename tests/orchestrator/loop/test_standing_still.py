"""T88: a machine that slept, and an orchestrator that was stopped: stock is taken, and it goes on."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.ledger import Request
from orchestrator.proposers import Brief, Stalled, Unanswered
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, Scripted, proposal, scripted, write_task
from tests.orchestrator.loop.telling import in_moments

SHORT = '[limits]\nwall = "2s"\ngrace = "100ms"\n'


def sleeps(session: Scripted, seconds: float) -> None:
    """The process is not there for so long, from now on: whatever has a deadline by then is late."""
    awake = session.bench.door.awake
    was = awake.clock
    awake.clock = lambda: was() + seconds


@dataclass
class Sleepy(Script):
    """We fall asleep while a candidate runs that is too slow."""

    fall_asleep: Callable[[], None] = lambda: None

    async def _misbehave(self, guest: Guest, do: str) -> int:
        self.fall_asleep()
        return await super()._misbehave(guest, do)


@in_moments
async def test_t88_a_trial_whose_time_passed_in_our_sleep_is_run_again(tmp_path: Path) -> None:
    """Its limit was reached by the clock; nobody saw whether it would have been in time, so nobody pays."""
    folder = write_task(tmp_path / "task", limits=SHORT)
    slow: Point = {"value": 3, "do": "too slow", "then": '{"do": "answer"}'}
    script = Sleepy()
    async with scripted(folder, script, slow) as session:
        script.fall_asleep = lambda: sleeps(session, 100)
        await session.run()
        (requeued,) = session.of(e.AttemptRequeued)
        assert (requeued.ending, session.state.trials["1.1-1"].ending) == (Ending.INTERRUPTED,) * 2
        assert "stood still for 100 s" in requeued.why
        node = session.nodes["1.1"]
        assert (node.ending, node.stalls, session.charged) == (Ending.SCORED, 0, 1)
        assert session.state.campaign.refunds == {}
        assert session.state.campaign.free == 0


@in_moments
async def test_a_trial_that_is_too_slow_by_itself_still_pays(tmp_path: Path) -> None:
    """Only where we were not there is it free."""
    folder = write_task(tmp_path / "task", limits=SHORT)
    async with scripted(folder, None, {"value": 3, "do": "too slow"}, {"value": 4}) as session:
        session.when(e.AttemptEnded, lambda event: sleeps(session, 100) if event.node == "1.1" else None)
        await session.run()
        assert session.nodes["1.1"].ending is Ending.TIMED_OUT
        assert session.charged == 2


@pytest.mark.parametrize("error", [Stalled, Unanswered])
async def test_t88_a_proposer_that_was_cut_by_our_sleep_is_asked_again(folder: Path, error: type[Exception]) -> None:
    """A line that broke, an agent that ran out of time: neither is a stall, nor an attempt without an answer."""
    asked = 0

    async def act(_: Brief) -> Sequence[Proposal]:
        nonlocal asked
        asked += 1
        if asked == 1:
            sleeps(session, 100)
            raise error("it was silent")
        return [proposal({"value": 5})]

    async with scripted(folder, None, act) as session:
        await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.stalls, session.charged) == (Ending.SCORED, 0, 1)
        assert [it.ending for it in session.of(e.AttemptRequeued)] == [Ending.INTERRUPTED]


def waits_for_the_ledger(session: Scripted, seconds: float) -> None:
    """Nothing could be begun for so long."""
    awake = session.bench.door.awake
    was = awake.held
    awake.held = lambda: was() + seconds


@pytest.mark.parametrize("stands", [sleeps, waits_for_the_ledger])
async def test_t87_standing_still_again_and_again_comes_to_an_end(
    tmp_path: Path, stands: Callable[[Scripted, float], None]
) -> None:
    """A machine that sleeps, or a ledger that is late, sooner than any attempt is done: one standstill is one free
    ending, however many ran.
    """
    folder = write_task(tmp_path / "task", "[stall]\nin_a_row = 3\n")

    async def act(_: Brief) -> Sequence[Proposal]:
        stands(session, 100)
        raise Stalled("it was silent")

    async with scripted(folder, None, *[act] * 9, width=1, attempts=9) as session:
        assert (await session.run()).gave_up
        assert len(session.of(e.StoodStill)) == 3
        assert session.charged == 0


async def test_t88_slept_time_is_not_on_the_clock_of_the_campaign(folder: Path) -> None:
    """A cap of a minute is not reached by a night with a closed lid."""
    points = [{"value": number} for number in range(1, 5)]
    async with scripted(folder, None, *points, wall=60.0, width=1) as session:

        def close_lid(event: e.AttemptEnded) -> None:
            if event.node == "1.2":
                sleeps(session, 30_000)
                session.clock.skip(30_000)

        session.when(e.AttemptEnded, close_lid)
        await session.run()
        (slept,) = session.of(e.StoodStill)
        assert 29_999 < slept.seconds < 30_100
        assert session.state.campaign.elapsed_s < 60
        assert session.charged == 4


async def test_t88_a_sleep_while_requests_are_read_is_not_on_the_clock_either(folder: Path) -> None:
    """Whenever it comes, stock is taken before anybody looks whether the time is over."""
    points = [{"value": number} for number in range(1, 5)]
    async with scripted(folder, None, *points, wall=60.0, width=1) as session:
        book, reads = session.bench.book, session.bench.book.requests

        async def close_lid() -> list[Request]:
            asked = await reads()
            if session.charged == 2 and not session.of(e.StoodStill):
                sleeps(session, 30_000)
                session.clock.skip(30_000)
            return asked

        book.requests = close_lid  # type: ignore[method-assign]  # a sleep in the middle of it
        await session.run()
        assert len(session.of(e.StoodStill)) == 1
        assert session.charged == 4


async def test_t88_a_clock_that_was_set_back_does_not_keep_the_queue_waiting(folder: Path) -> None:
    """An attempt that waits until tomorrow by a clock that was wrong is run now."""
    async with scripted(folder, None, {"value": 3, "do": "cut", "then": '{"do": "answer"}'}) as session:
        session.bench.book.listeners.remove(session.clock.skip_wait)

        def back(_: e.AttemptRequeued) -> None:
            session.script.world.answers = True
            session.clock.skip(-86_400)

        session.when(e.AttemptRequeued, back)
        await session.run()
        assert session.nodes["1.1"].ending is Ending.SCORED


PROCESS = """
import asyncio, sys
from pathlib import Path
from orchestrator.domain import events as e
from tests.orchestrator.loop.scripted import scripted, write_task

async def main() -> None:
    folder = write_task(Path(sys.argv[1]), limits='[limits]\\nwall = "2s"\\ngrace = "1s"\\n')
    points = [{"value": number, "takes": 0.2} for number in range(1, 5)]
    async with scripted(folder, None, *points, width=2, attempts=4) as session:
        session.bench.door.awake.limit_s = 1.0
        session.when(e.TrialIntended, lambda event: print(event.trial, flush=True))
        await session.run()
        ended = sorted(node.ending for node in session.nodes.values())
        slept = sum(it.seconds for it in session.of(e.StoodStill))
        print("ended", *ended, session.charged, len(session.of(e.AttemptQuarantined)), slept > 2, flush=True)

asyncio.run(main())
"""


async def test_t88_a_process_that_is_stopped_for_longer_than_its_trials_may_take(tmp_path: Path) -> None:
    """SIGSTOP while trials run, SIGCONT when all of their deadlines have passed: all of them are scored in the end."""
    root = str(Path(__file__).parents[3])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROCESS, str(tmp_path / "task")),
        env={**os.environ, "PYTHONPATH": root},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = process.stdout
    try:
        async with asyncio.timeout(240):
            while not (await lines.readline()).startswith(b"1.1-1"):
                pass
            os.kill(process.pid, signal.SIGSTOP)
            await asyncio.sleep(3.0)  # a stopped process can only be left alone for a time
            os.kill(process.pid, signal.SIGCONT)
            said = [line async for line in lines]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    assert said[-1].split() == [b"ended", *[b"scored"] * 5, b"4", b"0", b"True"]
