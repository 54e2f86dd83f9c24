"""Strict scores: a better one is run again before it is kept, and of two that are as good the smaller change wins."""

from pathlib import Path

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.domain.verdict import Mode
from orchestrator.wiring.beginning import How
from sandbox import Job
from tests.orchestrator.loop.noise import scripted_scores
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import CPU, GUARD, Point, Scripted, ran, scripted, worst_of, write_task


def purposes(session: Scripted, node: str) -> list[Purpose]:
    return [trial.purpose for trial in session.state.trials_of(node)]


async def test_replayed_before_it_is_kept(folder: Path) -> None:
    """A better candidate is run twice, one that is no better once, and the baseline is not replayed."""
    session = await ran(folder, None, {"value": 3}, {"value": 2})
    assert purposes(session, "1") == [Purpose.SUBMIT]
    assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY]
    assert purposes(session, "1.2") == [Purpose.SUBMIT]
    assert session.champion == "1.1"
    assert session.charged == 2


async def test_score_that_does_not_stand(folder: Path) -> None:
    """A score that falls below the champion's when it is run again is not kept, and both are told."""
    script = Script()
    async with scripted(folder, script, {"value": 3}, {"value": 4}) as session:
        script.noise = scripted_scores(session.state, {"1.2": (0.5, -1.5)})
        finished = await session.run()
        node = session.nodes["1.2"]
        assert (node.ending, node.kept) == (Ending.SCORED, False)
        assert node.why == "its score did not stand when it was run again: 4.5, then 2.5"
        assert finished.champion == session.nodes["1.1"]


async def test_bar_is_the_worse_score(folder: Path) -> None:
    """A champion that was lucky once is beaten by what is better than the worse of its two scores."""
    script = Script()
    async with scripted(folder, script, {"value": 3}, {"value": 4}) as session:
        script.noise = scripted_scores(session.state, {"1.1": (2.0, 0.0)})
        finished = await session.run()
        assert finished.champion == session.nodes["1.2"]


async def test_does_not_run_again(folder: Path) -> None:
    """A candidate that goes wrong when it is run again is scored and charged, and not kept."""
    again = {
        '{"do": "failed"}': "failed: ",
        '{"judge": "no solution"}': "no solution",
        '{"judge": "nan"}': "cannot score",
    }
    points: list[Point] = [{"value": 3, "then": then} for then in again]
    session = await ran(folder, None, *points)
    for number, why in enumerate(again.values(), 1):
        node = session.nodes[f"1.{number}"]
        assert (node.ending, node.kept, session.charged) == (Ending.SCORED, False, 3)
        assert node.why.startswith("it did not stand when it was run again: ")
        assert why in node.why


async def test_replay_is_set_aside(tmp_path: Path) -> None:
    """Two trials are reserved with an attempt, so the replay always has room, and a judging of the baseline. Where the
    task says so, one score decides, and one trial is set aside.
    """
    for more, purposes_of, trials in (
        ("", [Purpose.SUBMIT, Purpose.REPLAY], 2),
        ("[certify]\nreplay = false\n", [Purpose.SUBMIT], 1),
    ):
        session = await ran(write_task(tmp_path / f"task{trials}", more), None, {"value": 3})
        assert purposes(session, "1.1") == purposes_of
        baseline, attempt = session.of(e.Reserved)
        assert attempt.amounts[Account.ATTEMPTS.value] == 1
        assert _seconds(attempt) == trials * _seconds(baseline) + _a_judging(session)


def _seconds(reserved: e.Reserved) -> int:
    return reserved.amounts[Account.SECONDS.value]


def _a_judging(session: Scripted) -> int:
    """What is set aside to ask the judge about the baseline, should it break."""
    return worst_of(session.bench.home, session.bench.jobs.judge(Mode.SUBMIT)).milliseconds


async def test_provider_fails_at_the_replay(folder: Path) -> None:
    """A replay for which no chamber is had is tried again; the first trial is not."""
    session = await ran(folder, failing(1, after=2), {"value": 3})
    node = session.nodes["1.1"]
    assert (node.kept, node.take, session.charged) == (True, 2, 1)
    assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY, Purpose.REPLAY]


async def test_stopped_at_the_replay(folder: Path) -> None:
    """A resume goes on with the replay, and pays for the attempt once."""
    session = await ran(folder, None, {"value": 3, "then": '{"do": "wait"}'}, stop=(e.TrialIntended, 3))
    assert session.state.champion() == session.nodes["1"]
    session = await ran(folder, None, {"value": 3}, how=How.RESUME)
    assert session.champion == "1.1"
    assert purposes(session, "1.1") == [Purpose.SUBMIT, Purpose.REPLAY, Purpose.REPLAY]
    assert session.charged == 1


async def test_guards_after_the_replay(tmp_path: Path) -> None:
    """What does not stand is never guarded: guards cost as much as a trial."""
    folder = write_task(tmp_path / "task", GUARD)
    script = Script()
    async with scripted(folder, script, {"value": 3}) as session:
        script.noise = scripted_scores(session.state, {"1.1": (0.0, -3.0)})
        await session.run()
        assert session.nodes["1.1"].kept is False
        assert "guard" not in script.commands


async def test_replay_lands_elsewhere(tmp_path: Path) -> None:
    """In a fleet that is mixed, a replay is tried again until it is in the same cohort, a few times at most."""
    folder = write_task(tmp_path / "task", CPU)
    runs = 0

    async def on_open(job: Job) -> None:
        nonlocal runs
        runs += job.command[0] == "trial"
        script.cpu = "another" if runs > 2 else "pretended"

    script = Script(on_open=on_open)
    session = await ran(folder, script, {"value": 3})
    node = session.nodes["1.1"]
    assert purposes(session, "1.1") == [Purpose.SUBMIT, *[Purpose.REPLAY] * 3]
    assert node.kept is False
    assert "other hardware" in node.why
    # One replay is set aside with the attempt; the others were, when they were due.
    assert [it.hold for it in session.of(e.Reserved) if it.hold.endswith("/replay")] == ["1.1#1/replay"] * 2
    assert not session.accounts.holds


async def test_tie_goes_to_the_smaller_change(folder: Path) -> None:
    """As good with fewer lines changed replaces the champion, and is replayed for it; as good with more does not. The
    baseline is never replaced by what is only as good: no change is smaller than none.
    """
    same: list[Point] = [{"value": 3, "a": 1, "b": 2}, {"value": 3, "a": 1}, {"value": 3, "a": 1, "b": 3}]
    session = await ran(folder, None, {"value": 0, "a": 1}, *same)
    nodes = session.nodes
    assert [nodes[name].size for name in ("1", "1.2", "1.3", "1.4")] == [0, 4, 3, 4]
    assert [nodes[f"1.{number}"].kept for number in range(1, 5)] == [False, True, True, False]
    assert nodes["1.3"].why == "as good as the champion, and a smaller change"
    assert (purposes(session, "1.1"), purposes(session, "1.3")) == (
        [Purpose.SUBMIT],
        [Purpose.SUBMIT, Purpose.REPLAY],
    )
    assert session.champion == "1.3"
