"""Strict scores: a better one is run again before it is kept, and of two that are as good the smaller change wins."""

from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.domain.verdict import Mode
from orchestrator.wiring.beginning import How
from sandbox import Job
from tests.orchestrator.loop.noise import scripted_scores
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import CPU, GUARD, Point, Scripted, scripted, worst_of, write_task


def purposes(session: Scripted, node: str) -> list[Purpose]:
    return [trial.purpose for trial in session.bench.state.trials_of(node)]


async def test_replayed_before_it_is_kept(folder: Path) -> None:
    """A better candidate is run twice, one that is no better once, and the baseline is not replayed."""
    async with scripted(folder, None, {"value": 3}, {"value": 2}) as session:
        finished = await session.run()
        assert purposes(session, "1") == [Purpose.SUBMIT]
        assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY]
        assert purposes(session, "1.2") == [Purpose.SUBMIT]
        assert finished.champion == session.bench.state.nodes["1.1"]
        assert session.charged == 2


async def test_score_that_does_not_stand(folder: Path) -> None:
    """A score that falls below the champion's when it is run again is not kept, and both are told."""
    script = Script()
    async with scripted(folder, script, {"value": 3}, {"value": 4}) as session:
        script.noise = scripted_scores(session.bench.state, {"1.2": (0.5, -1.5)})
        finished = await session.run()
        node = session.bench.state.nodes["1.2"]
        assert (node.ending, node.kept) == (Ending.SCORED, False)
        assert node.why == "its score did not stand when it was run again: 4.5, then 2.5"
        assert finished.champion == session.bench.state.nodes["1.1"]


async def test_bar_is_the_worse_score(folder: Path) -> None:
    """A champion that was lucky once is beaten by what is better than the worse of its two scores."""
    script = Script()
    async with scripted(folder, script, {"value": 3}, {"value": 4}) as session:
        script.noise = scripted_scores(session.bench.state, {"1.1": (2.0, 0.0)})
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.2"]


@pytest.mark.parametrize(
    ("again", "why"),
    [
        ('{"do": "failed"}', "failed: "),
        ('{"judge": "no solution"}', "no solution"),
        ('{"judge": "nan"}', "cannot score it"),
    ],
)
async def test_does_not_run_again(folder: Path, again: str, why: str) -> None:
    """A candidate that goes wrong when it is run again is scored and charged, and not kept."""
    async with scripted(folder, None, {"value": 3, "then": again}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.ending, node.kept, session.charged) == (Ending.SCORED, False, 1)
        assert node.why.startswith("it did not stand when it was run again: ")
        assert why in node.why


async def test_without_replay(tmp_path: Path) -> None:
    """Where the task says so, one score decides, and a trial and a judging of the baseline are set aside."""
    folder = write_task(tmp_path / "task", "[certify]\nreplay = false\n")
    async with scripted(folder, None, {"value": 3}) as session:
        await session.run()
        assert purposes(session, "1.1") == [Purpose.SUBMIT]
        baseline, attempt = session.of(e.Reserved)
        assert attempt.amounts[Account.ATTEMPTS.value] == 1
        assert _seconds(attempt) == _seconds(baseline) + _a_judging(session)


async def test_replay_is_set_aside(folder: Path) -> None:
    """Two trials are reserved with an attempt, so the replay always has room; and a judging of the baseline."""
    async with scripted(folder, None, {"value": 3}) as session:
        await session.run()
        baseline, attempt = session.of(e.Reserved)
        assert _seconds(attempt) == 2 * _seconds(baseline) + _a_judging(session)


def _seconds(reserved: e.Reserved) -> int:
    return reserved.amounts[Account.SECONDS.value]


def _a_judging(session: Scripted) -> int:
    """What is set aside to ask the judge about the baseline, should it break."""
    return worst_of(session.bench.home, session.bench.jobs.judge(Mode.SUBMIT)).milliseconds


async def test_provider_fails_at_the_replay(folder: Path) -> None:
    """A replay for which no chamber is had is tried again; the first trial is not."""
    async with scripted(folder, failing(1, after=2), {"value": 3}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.kept, node.take, session.charged) == (True, 2, 1)
        assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY, Purpose.REPLAY]


async def test_stopped_at_the_replay(folder: Path) -> None:
    """A resume goes on with the replay, and pays for the attempt once."""
    async with scripted(folder, None, {"value": 3, "then": '{"do": "wait"}'}) as session:
        session.stop_at(e.TrialIntended, 3)
        await session.run()
        assert session.bench.state.champion() == session.bench.state.nodes["1"]
    async with scripted(folder, None, {"value": 3}, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.1"]
        assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY, Purpose.REPLAY]
        assert session.charged == 1


async def test_guards_after_the_replay(tmp_path: Path) -> None:
    """What does not stand is never guarded: guards cost as much as a trial."""
    folder = write_task(tmp_path / "task", GUARD)
    script = Script()
    async with scripted(folder, script, {"value": 3}) as session:
        script.noise = scripted_scores(session.bench.state, {"1.1": (0.0, -3.0)})
        await session.run()
        assert session.bench.state.nodes["1.1"].kept is False
        assert "guard" not in script.commands


async def test_replay_lands_elsewhere(tmp_path: Path) -> None:
    """In a fleet that is mixed, a replay is tried again until it is in the same cohort, a few times at most."""
    folder = write_task(tmp_path / "task", CPU)
    ran = 0

    async def on_open(job: Job) -> None:
        nonlocal ran
        ran += job.command[0] == "trial"
        script.cpu = "another" if ran > 2 else "pretended"

    script = Script(on_open=on_open)
    async with scripted(folder, script, {"value": 3}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert purposes(session, "1.1") == [Purpose.SUBMIT, *[Purpose.REPLAY] * 3]
        assert node.kept is False
        assert "other hardware" in node.why
        # One replay is set aside with the attempt; the others were, when they were due.
        assert [it.hold for it in session.of(e.Reserved) if it.hold.endswith("/replay")] == ["1.1#1/replay"] * 2
        assert not session.bench.book.accounts.holds


async def test_tie_goes_to_the_smaller_change(folder: Path) -> None:
    """As good with fewer lines changed replaces the champion, and is replayed for it; as good with more does not."""
    points: list[Point] = [{"value": 3, "a": 1, "b": 2}, {"value": 3, "a": 1}, {"value": 3, "a": 1, "b": 3}]
    async with scripted(folder, None, *points) as session:
        finished = await session.run()
        nodes = session.bench.state.nodes
        assert [nodes[name].size for name in ("1", "1.1", "1.2", "1.3")] == [0, 4, 3, 4]
        assert [nodes[name].kept for name in ("1.1", "1.2", "1.3")] == [True, True, False]
        assert nodes["1.2"].why == "as good as the champion, and a smaller change"
        assert purposes(session, "1.2") == [Purpose.SUBMIT, Purpose.REPLAY]
        assert finished.champion == nodes["1.2"]


async def test_tie_with_the_baseline(folder: Path) -> None:
    """The baseline is never replaced by what is only as good: no change is smaller than none."""
    async with scripted(folder, None, {"value": 0, "a": 1}) as session:
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1"]
        assert purposes(session, "1.1") == [Purpose.SUBMIT]
