"""After delivery, who proves that an ending was not the candidate's: control jobs, and the judge on the baseline."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Purpose
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import GUARD, ran, scripted, write_task


@pytest.mark.parametrize("do", ["break off", "cut"])
async def test_t80_lost_after_delivery(folder: Path, do: str) -> None:
    """After delivery only a control job that fails too makes an ending free; else the candidate pays (T80)."""
    script = Script()
    async with scripted(folder, script, {"value": 3, "do": do}, {"value": 1}) as session:

        def back(_: e.Event) -> None:
            script.world.answers = True

        session.when(e.AttemptRequeued, back)
        session.when(e.AttemptQuarantined, back)
        await session.run()
        state, first = session.state, session.state.trials["1.1-1"]
        if do == "break off":
            assert first.ending is Ending.FAILED
            assert "a control job passed" in first.reason
            assert (state.nodes["1.1"].ending, session.charged) == (Ending.FAILED, 2)
        else:
            assert first.ending is Ending.INFRASTRUCTURE
            assert state.nodes["1.1"].phase is Phase.QUARANTINED
            assert session.charged == 1
        assert state.nodes["1.2"].ending is Ending.SCORED
        assert first.spent.milliseconds > 0


async def test_t79_judge_breaks_on_these_outputs(folder: Path) -> None:
    """A judge that breaks is asked about the baseline; where it is well there, the candidate is invalid and pays."""
    script = Script()
    session = await ran(folder, script, {"value": 3, "judge": "crash"})
    node = session.nodes["1.1"]
    assert (node.ending, session.charged) == (Ending.INVALID, 1)
    assert script.commands == ["trial", "judge", "trial", "judge", "judge"]
    control = [event for event in session.of(e.JudgingEnded) if event.on_baseline]
    assert [event.fault for event in control] == [None]


async def test_t79_judge_breaks_on_the_baseline_too(folder: Path) -> None:
    """A judge that breaks on the baseline too is infrastructure: free, tried again, scored once it is well."""
    script = Script()
    async with scripted(folder, script, {"value": 3}) as session:

        def spoil(event: e.AttemptEnded) -> None:
            script.judge_is_broken = event.node == "1"

        def mend(event: e.AttemptRequeued) -> None:
            script.judge_is_broken = False

        session.when(e.AttemptEnded, spoil)
        session.when(e.AttemptRequeued, mend)
        await session.run()
        (requeued,) = session.of(e.AttemptRequeued)
        assert requeued.ending is Ending.INFRASTRUCTURE
        assert "baseline too" in requeued.why
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)
        assert [trial.purpose for trial in session.state.trials_of("1.1")] == [Purpose.SUBMIT, Purpose.REPLAY]
        assert session.accounts.losses.seconds > 0


async def test_judge_lost_with_the_provider(folder: Path) -> None:
    """A provider that goes down while the judge works costs the candidate nothing; its outputs are judged later."""
    script = Script()
    async with scripted(folder, script, {"value": 3, "judge": "cut"}) as session:
        seen: list[e.AttemptRequeued] = []

        def back(event: e.AttemptRequeued) -> None:
            seen.append(event)
            script.world.answers = True
            session.campaign.stop("enough")

        session.when(e.AttemptRequeued, back)
        await session.run()
        assert [event.ending for event in seen] == [Ending.INFRASTRUCTURE]
        assert session.charged == 0


async def test_what_a_lost_judging_cost_stays_spent(folder: Path) -> None:
    """Seconds of a judge that broke, before there was no chamber for its control, are booked: spent is spent."""
    script = failing(1, "judge", after=2)
    async with scripted(folder, script, {"value": 3, "judge": "crash"}) as session:
        held: list[int] = []
        session.when(e.AttemptRequeued, lambda _: held.append(session.nodes["1.1"].spent.milliseconds))
        await session.run()
        first = session.state.trials["1.1-1"].spent.milliseconds
        assert held[0] > first


async def test_guard_lost_with_the_provider(tmp_path: Path) -> None:
    """A guard whose provider went down is run again; what it cost until then stays spent."""
    script = Script(guard_cuts=True)
    async with scripted(write_task(tmp_path / "task", GUARD), script, {"value": 3}) as session:

        def back(event: e.AttemptRequeued) -> None:
            script.world.answers, script.guard_cuts = True, False

        session.when(e.AttemptRequeued, back)
        await session.run()
        node = session.nodes["1.1"]
        lost, passed = session.of(e.GuardEnded)
        assert (lost.interrupted, passed.passed, node.kept) == (True, True, True)
        assert lost.spent.milliseconds > 0
        assert session.accounts.losses.seconds >= lost.spent.milliseconds
