"""Where the judge calls the candidate: how it ends, who pays, and what is on record of it."""

import asyncio
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Phase, Purpose
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.judge import relay
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.judge.relay import Conversation, Side
from orchestrator.loop.money import worst_of_trial
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.views.cli import cli
from orchestrator.views.live.tally import ended_line
from orchestrator.wiring.backends.docker import spare_of
from orchestrator.wiring.beginning import How
from orchestrator.wiring.planning import plan_campaign
from sandbox import DockerConfig, Job, Unavailable
from sandbox.backends.fake import backend as fake
from sandbox.backends.fake.backend import Guest
from sandbox.live import LiveChamber
from tests.clicking import runner
from tests.orchestrator.loop.noise import noisy
from tests.orchestrator.loop.relay_script import LARGE, STRICT, TIMING, WALL_S, RelayScript, judge, write_relay_task
from tests.orchestrator.loop.script import ScriptedBackend
from tests.orchestrator.loop.scripted import GUARD, HELDOUT, TUNE, Point, make_site, scripted, worst_of
from tests.sandbox.scripted import Hiccup


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_relay_task(tmp_path / "task")


async def test_scored(task: Path) -> None:
    """Both chambers are intended before they are there and ended together; the verdict is of tier relay."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3}, {"value": 2}) as session:
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.1"]
        trial = session.bench.state.trials["1.1-1"]
        kinds = [event.kind for event in session.events if getattr(event, "trial", "") == trial.id]
        assert kinds == ["trial intended", "judging intended", "trial ended", "judging ended"]
        assert trial.verdict
        assert (trial.verdict.tier, trial.verdict.metrics["score"]) == (Tier.RELAY, 3.0)
        assert (trial.ending, trial.judged, trial.outputs) == (None, True, None)
        assert trial.traces is not None
        assert trial.log is not None
        assert trial.fingerprint["backend"] == "fake"
        assert trial.spent.milliseconds > 0
        assert session.charged == 2


async def test_what_the_judge_is_told(task: Path) -> None:
    """A seed that is new each time and on record, the candidate's functions, and the channel's figures."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3}) as session:
        await session.run()
        kept = [session.bench.state.trials[name].calibration for name in ("1-1", "1.1-1", "1.1-2")]
        assert len(set(script.seeds)) == 3
        assert [it.seed for it in kept if it] == script.seeds
        assert [it.calls for it in kept if it] == [1, 1, 1]
        for begun, calibration in zip(script.begun, kept, strict=True):
            assert calibration
            assert begun["functions"] == ["solve"]
            assert begun["median"] == calibration.median_s > 0
            assert begun["jitter"] == calibration.jitter_s >= 0
        assert not any(seed.encode() in request for seed in script.seeds for request in script.requests)
        assert script.requests[0] == b"L"
        assert set(script.requests[1:-1]) >= {b"N"}


async def test_t27_slow_to_do_nothing(task: Path) -> None:
    """A candidate that takes its time over empty calls does not get that time taken off: the judge's channel counts."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3, "null": 0.02}) as session:
        await session.run()
        calibration = session.bench.state.trials["1.1-1"].calibration
        assert calibration
        assert calibration.median_s < 0.02


async def test_elapsed_is_ours(task: Path) -> None:
    """The judge is told how long the call took by our clock."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3, "takes": 1.0}) as session:
        await session.run()
        assert script.elapsed[-1] >= 1.0 > script.elapsed[0]


@pytest.mark.parametrize(
    ("do", "ending", "why"),
    [
        ("die", Ending.FAILED, "the chamber ended by itself"),
        ("load die", Ending.FAILED, "the chamber ended by itself"),
        ("out of memory", Ending.OUT_OF_MEMORY, "over its memory limit"),
        ("load out of memory", Ending.OUT_OF_MEMORY, "over its memory limit"),
        ("too slow", Ending.TIMED_OUT, f"loading and all calls together took more than {WALL_S:g} s"),
        ("load too slow", Ending.TIMED_OUT, f"loading and all calls together took more than {WALL_S:g} s"),
        ("early", Ending.TAMPERED, "frame with a wrong nonce: the reply does not echo the nonce of its request"),
        ("does not load", Ending.FAILED, "it does not load: no"),
        ("loads nothing", Ending.FAILED, "what it answers when it is loaded is no list of functions"),
        ("says much", Ending.FAILED, "an empty call was answered by something"),
        (
            "break off",
            Ending.FAILED,
            "the fake provider's connection broke; a control job passed, so the candidate pays",
        ),
    ],
)
async def test_the_candidate_ends_it(task: Path, do: str, ending: Ending, why: str) -> None:
    """Whatever the candidate does to end it is its own ending; it pays, and the next one is scored."""
    async with scripted(task, RelayScript(), {"value": 3, "do": do}, {"value": 1}) as session:
        await session.run()
        state = session.bench.state
        trial = state.trials["1.1-1"]
        assert (trial.ending, trial.reason) == (ending, why)
        assert (state.nodes["1.1"].ending, trial.judged, trial.judging) == (ending, False, None)
        assert (state.nodes["1.2"].ending, session.charged) == (Ending.SCORED, 2)
        assert trial.spent.milliseconds > 0


async def test_t81_answered_twice(task: Path) -> None:
    """A second answer to the same call, while the judge thinks, is tampering."""
    async with scripted(task, RelayScript(), {"value": judge("calls again"), "do": "twice"}) as session:
        await session.run()
        trial = session.bench.state.trials["1.1-1"]
        assert (trial.ending, trial.reason) == (Ending.TAMPERED, "frame extra: a frame that nobody asked for")


async def test_t80_dead_while_nobody_asks(task: Path) -> None:
    """A candidate that dies between calls fails at the next one; with no next one, its answers count."""
    again: Point = {"value": judge("calls again"), "do": "die after"}
    once: Point = {"value": 3, "do": "die after"}
    async with scripted(task, RelayScript(), again, once) as session:
        await session.run()
        state = session.bench.state
        assert (state.nodes["1.1"].ending, state.nodes["1.1"].phase) == (Ending.FAILED, Phase.ENDED)
        assert (state.nodes["1.2"].ending, session.charged) == (Ending.SCORED, 2)


@pytest.mark.parametrize(
    ("does", "fault"),
    [
        ("crash", "judge failed"),
        ("think", "judge timed out"),
        ("babble", "judge protocol broken"),
        ("no files", "judge protocol broken"),
        ("odd name", "judge protocol broken"),
        ("too much", "judge protocol broken"),
        ("no metric", "metric missing: seconds"),
    ],
)
async def test_t79_the_judge_breaks(tmp_path: Path, does: str, fault: str) -> None:
    """A judge that breaks meets the baseline before anybody pays; where it is well there, the candidate is invalid."""
    script = RelayScript()
    async with scripted(write_relay_task(tmp_path / "task", TIMING), script, {"value": judge(does)}) as session:
        await session.run()
        node, trial = session.bench.state.nodes["1.1"], session.bench.state.trials["1.1-1"]
        assert (node.ending, session.charged) == (Ending.INVALID, 1)
        assert node.why == f"the judge cannot score it: {fault}"
        assert script.commands == ["judge", "trial"] * 3
        [control] = [event for event in session.of(e.JudgingEnded) if event.on_baseline]
        assert control.fault is None
        assert control.spent.milliseconds > 0
        assert node.spent.milliseconds >= control.spent.milliseconds
        assert (trial.ended, trial.judged, trial.judging) == (True, True, None)


async def test_t79_the_judge_is_broken(task: Path) -> None:
    """A judge that breaks on the baseline too is infrastructure: free, tried again, scored once it is well."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3}) as session:

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
        assert session.bench.state.trials["1.1-1"].ending is Ending.INFRASTRUCTURE
        assert (session.bench.state.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)
        assert session.bench.book.accounts.losses.seconds > 0


async def test_no_solution(task: Path) -> None:
    """A judge that says so ends it as invalid, without asking about the baseline; run's line has the judge's reason."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("no solution")}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.ending, node.why) == (Ending.INVALID, "the judge says that it is no solution")
        line = ended_line(node, None, session.bench.ranking.metrics, True).plain
        assert "the judge says that it is no solution: call 3: not\\x1b[31m sorted" in line
        assert script.commands == ["judge", "trial"] * 2


@pytest.mark.parametrize("who", ["candidate", "judge"])
async def test_lost_with_the_provider(task: Path, who: str) -> None:
    """A provider that goes down takes both chambers along, and nobody pays: a control job fails too."""
    script = RelayScript()
    point: Point = {"value": 3, "do": "cut"} if who == "candidate" else {"value": judge("cut")}
    async with scripted(task, script, point) as session:
        seen: list[e.AttemptRequeued] = []

        def back(event: e.AttemptRequeued) -> None:
            seen.append(event)
            script.world.answers = True
            session.campaign.stop("enough")

        session.when(e.AttemptRequeued, back)
        await session.run()
        assert [event.ending for event in seen] == [Ending.INFRASTRUCTURE]
        trial = session.bench.state.trials["1.1-1"]
        assert (trial.ended, trial.ending, trial.judging, session.charged) == (True, Ending.INFRASTRUCTURE, None, 0)


async def test_T86_a_silence_within_a_call(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call took while the provider answered nobody is no time of the candidate's: free, and tried again."""
    pulse, silences = Hiccup(0.0), [6.0, 0.0, 0.0]
    monkeypatch.setattr(fake, "LiveChamber", partial(LiveChamber, pulse=pulse))

    class Silences(RelayScript):
        async def _wait(self, _: Guest) -> None:
            pulse.silent_s = silences.pop(0)

    async with scripted(task, Silences(), {"value": 3, "do": "wait"}) as session:

        def over(_: e.AttemptRequeued) -> None:
            pulse.silent_s = 0.0

        session.when(e.AttemptRequeued, over)
        await session.run()
        (requeued,) = session.of(e.AttemptRequeued)
        assert (requeued.ending, session.charged) == (Ending.INFRASTRUCTURE, 1)
        assert "silent for 6.0 s of a call" in session.bench.state.trials["1.1-1"].reason


async def test_T86_a_database_that_is_waited_for(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds up nobody who is in a chamber: a meeting goes on, and its times are right."""
    back = threading.Event()

    class Waiting(RelayScript):
        async def _wait(self, _: Guest) -> None:
            book, real = session.bench.book, session.bench.book.ledger.append

            def away(*args: Any) -> Any:
                assert back.wait(60)
                return real(*args)

            monkeypatch.setattr(book.ledger, "append", away)
            book.record(e.PauseSet(paused=False))
            await asyncio.sleep(0.05)  # the loop goes on
            assert not back.is_set()
            back.set()

    async with scripted(task, Waiting(), {"value": 3, "do": "wait"}) as session:
        await session.run()
        assert back.is_set()
        assert session.bench.state.trials["1.1-1"].ending is None
        assert (session.bench.state.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)


async def test_T86_a_database_that_goes_away_between_the_chambers(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are intended before the first is opened: the second waits for nothing while the first one's clock runs."""
    script = RelayScript()
    back, opened = threading.Event(), 0

    async def on_open(job: Job) -> None:
        nonlocal opened
        opened += job.command[0] == "judge"
        if opened == 2 and job.command[0] == "judge":  # that of 1.1, and another has something to write
            monkeypatch.setattr(session.bench.book.ledger, "append", away)
            session.bench.book.record(e.PauseSet(paused=False))
        if opened == 2 and job.command[0] == "trial":
            back.set()

    async with scripted(task, script, {"value": 3}) as session:
        real = session.bench.book.ledger.append

        def away(*args: Any) -> Any:
            assert back.wait(4 * WALL_S), "the candidate's chamber waited for the database"
            return real(*args)

        script.on_open = on_open
        await session.run()
        assert back.is_set()
        assert (session.bench.state.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)


@pytest.mark.parametrize("command", ["judge", "trial"])
async def test_no_chamber(task: Path, command: str) -> None:
    """Without a chamber for either, no hostile byte was delivered: free, and tried again."""
    script = RelayScript()
    left = 1

    async def on_open(job: Job) -> None:
        nonlocal left
        if job.command[0] == command and len(script.commands) >= 2 and left:
            left -= 1
            raise Unavailable("no chamber")

    script.on_open = on_open
    async with scripted(task, script, {"value": 3}) as session:
        await session.run()
        (requeued,) = session.of(e.AttemptRequeued)
        assert requeued.ending is Ending.INFRASTRUCTURE
        first, second = (session.bench.state.trials[f"1.1-{number}"] for number in (1, 2))
        assert (first.ending, first.judging) == (Ending.INFRASTRUCTURE, None)
        assert second.verdict
        assert session.charged == 1


@pytest.mark.parametrize("kind", [e.TrialIntended, e.JudgingIntended, e.TrialEnded, e.JudgingEnded, e.GuardIntended])
async def test_stop_and_resume(tmp_path: Path, kind: type[e.Event]) -> None:
    """Stopped wherever it was, with two chambers under way, a resume ends with the same verdicts."""
    points: list[list[Point]] = [[{"value": 3}, {"value": 4}], [{"value": 5}, {"value": 1}]]
    task = write_relay_task(tmp_path / "task", TUNE, GUARD)
    async with scripted(task, RelayScript(), *points) as session:
        session.stop_at(kind, 3)
        await session.run()
        assert not session.bench.book.accounts.holds
        assert all(it.ended and it.judging is None for it in session.bench.state.trials.values())
    async with scripted(task, RelayScript(), *points, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion
        assert finished.champion.params == {"value": 5}
        assert session.charged == 2


@pytest.mark.parametrize("who", ["candidate", "judge"])
async def test_interrupted(task: Path, who: str) -> None:
    """What both chambers cost until the stop is booked, trial and judging alike."""
    point: Point = {"value": 3, "do": "wait"} if who == "candidate" else {"value": judge("wait")}
    async with scripted(task, RelayScript(), point) as session:
        session.stop_at(e.JudgingIntended, 2)
        await session.run()
        node, trial = session.bench.state.nodes["1.1"], session.bench.state.trials["1.1-1"]
        assert (node.phase, trial.ending, trial.judging) == (Phase.QUEUED, Ending.INTERRUPTED, None)
        judged = [event for event in session.of(e.JudgingEnded) if event.trial == "1.1-1"]
        assert [event.interrupted for event in judged] == [True]
        assert node.spent == trial.spent + judged[0].spent
        assert node.booked == node.spent
        assert node.spent.milliseconds > 0


async def test_the_worst_case_is_reserved(task: Path) -> None:
    """Two chambers, and two more for the baseline; each may last as long as both sides may work together."""
    async with scripted(task, RelayScript(), {"value": 3}) as session:
        bench = session.bench
        trial, judging = (
            worst_of(bench.door, job) for job in (bench.jobs.trial(Mode.SUBMIT), bench.jobs.judge(Mode.SUBMIT))
        )
        assert trial.milliseconds > 2000 * WALL_S < judging.milliseconds
        amounts = worst_of_trial(bench, Mode.SUBMIT)
        assert amounts.as_row()["seconds"] == 2 * (trial.milliseconds + judging.milliseconds)
        plan = plan_campaign(task, How.START, Flags(), Settings())
        # It is replayed; the baseline is judged once, since a judge that breaks ends the attempt: six chambers.
        attempt_s = plan.attempt_s - 6 * (spare_of(DockerConfig()) - bench.door.tariff.spare_s)
        assert round(2000 * attempt_s) == 3 * amounts.as_row()["seconds"]
        await session.run()


async def test_t80_the_other_sides_time(task: Path) -> None:
    """Each side's limit counts its own turns: a candidate that uses up most of its time is not late for the judge's."""
    points: list[Point] = [{"value": judge("calls again"), "takes": 0.6 * WALL_S}, {"value": 1, "takes": 0.6 * WALL_S}]
    async with scripted(task, RelayScript(), *points) as session:
        await session.run()
        state = session.bench.state
        assert (state.nodes["1.1"].ending, state.nodes["1.2"].ending) == (Ending.TIMED_OUT, Ending.SCORED)


SECONDS = '[[metrics]]\nname = "seconds"\ngoal = "lower"\ntiming = true\n'
MAY_BE_LESS = "seconds may be less: the channel cannot tell a shorter call from none"


@pytest.mark.parametrize("jitter_ms", [0.02, 1.0, 20.0])
async def test_t27_too_fast_to_be_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jitter_ms: float) -> None:
    """A time that the channel cannot tell from none counts as the least that it can: the candidate is scored, it wins,
    and run, show and report say that it may be faster still. Never as no solution, and never as less.
    """
    script = RelayScript(seconds=0.035)
    task = write_relay_task(tmp_path / "task", SECONDS, STRICT)
    monkeypatch.setattr(Conversation, "_empty_calls", channel_of((0.001, jitter_ms / 1e3)))
    async with scripted(task, script, {"value": 3}) as session:

        def shrink(event: e.AttemptEnded) -> None:
            script.seconds = -0.001

        session.when(e.AttemptEnded, shrink)
        finished = await session.run()
        node, trial = session.bench.state.nodes["1.1"], session.bench.state.trials["1.1-1"]
        assert finished.champion == node
        assert (node.ending, session.charged) == (Ending.SCORED, 1)
        assert trial.verdict
        assert trial.verdict.metrics["seconds"] == pytest.approx(jitter_ms / 1e3)
        assert trial.verdict.at_most == ("seconds",)
        found = headline(session.bench.state, node)
        assert MAY_BE_LESS in ended_line(node, found, session.bench.ranking.metrics, True).plain
    shown = runner().invoke(cli, ["show", "1.1", str(task)], env={"COLUMNS": "200"})
    assert "may be less" in shown.output
    told = runner().invoke(cli, ["report", str(task)])
    assert "so they may be faster than is said: 1.1" in told.output


async def test_repeats_that_are_too_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under noise, the repeats of a candidate that is too fast to be timed prove it better all the same, and what they
    come to is shown as what it is.
    """
    monkeypatch.setattr(Conversation, "_empty_calls", channel_of((0.001, 0.02)))
    task = write_relay_task(tmp_path / "task", SECONDS, noisy(repeats=8, champion=2))
    async with scripted(task, RelayScript(seconds=0.035, times={3: 0.0001}), {"value": 3}) as session:
        await session.run()
        found = headline(session.bench.state, session.bench.state.nodes["1.1"])
        assert session.bench.state.nodes["1.1"].kept
        assert found
        assert found.runs > 1
        assert found.metrics["seconds"] == pytest.approx(0.02)
        assert found.at_most == ("seconds",)


@pytest.mark.parametrize("baseline_too", [False, True])
async def test_held_out_and_too_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline_too: bool) -> None:
    """On held-out data, too, the least that can be told counts; a ladder that begins with such a time is refused."""
    script = RelayScript(seconds=0.035)
    monkeypatch.setattr(Conversation, "_empty_calls", channel_of((0.001, 0.02)))
    task = write_relay_task(tmp_path / "task", SECONDS, STRICT, HELDOUT.replace("step = 1", "step = 0.001"))
    async with scripted(task, script, {"value": 3}) as session:

        def shrink(event: e.AttemptEnded | e.HeldOutIntended) -> None:
            script.seconds = -0.001

        session.when(e.HeldOutIntended if baseline_too else e.AttemptEnded, shrink)
        if baseline_too:
            with pytest.raises(BaselineFailed, match="on the held-out split: below what the channel can tell; correct"):
                await session.run()
            return
        await session.run()
        assert session.bench.state.nodes["1.1"].kept
        assert [(it.better, it.released) for it in session.of(e.HeldOutAsked)] == [(False, 0.035), (True, 0.02)]


async def test_a_time_that_the_judge_calls_a_bound(tmp_path: Path) -> None:
    """The judge's module knows best which of its times may have been less; its word is on record with the verdict."""
    script = RelayScript()
    async with scripted(write_relay_task(tmp_path / "task", TIMING), script, {"value": 3}) as session:

        def bound(event: e.AttemptEnded) -> None:
            script.at_most = True

        session.when(e.AttemptEnded, bound)
        await session.run()
        verdict = session.bench.state.trials["1.1-1"].verdict
        assert verdict
        assert (verdict.at_most, verdict.metrics["seconds"]) == (("seconds",), 1.0)


@pytest.mark.parametrize(
    ("told", "bounds", "kept"),
    [(0.4, 0, False), (0.7, 0, True), (0.7, 2, True), (0.4, 9, False)],
    ids=["it was faster", "it was slower", "told at the third", "never told"],
)
async def test_a_champion_that_may_be_faster(tmp_path: Path, told: float, bounds: int, kept: bool) -> None:
    """Less than a champion's bound is not less than the champion: it is measured again first, and where its time stays
    a bound, nothing is kept and why is said.
    """
    script = RelayScript(times={1: 1.0, 2: 0.8, 3: 0.5})
    async with scripted(
        write_relay_task(tmp_path / "task", SECONDS, STRICT), script, {"value": 2}, {"value": 3}
    ) as session:
        seen = 0

        def blur(event: e.TrialIntended) -> None:
            nonlocal seen
            seen += event.purpose is Purpose.REFERENCE
            again = event.purpose is Purpose.REFERENCE
            script.at_most = event.node == "1.1" or (again and seen <= bounds)
            script.times[2] = told if again and not script.at_most else 0.8

        session.when(e.TrialIntended, blur)
        await session.run()
        state = session.bench.state
        assert state.nodes["1.1"].kept
        assert state.nodes["1.2"].kept is kept, state.nodes["1.2"].why
        assert state.nodes["1.2"].undecided is (bounds == 9)
        assert seen == min(bounds + 1, 3)
        if bounds == 9:
            assert "seconds of 1.1 is only known to be at most 0.8" in (state.nodes["1.2"].why or "")
        found = headline(state, state.nodes["1.1"])
        assert found
        assert (found.runs, found.metrics["seconds"]) == (0, 0.8)
        assert not session.bench.book.accounts.holds


@pytest.mark.parametrize("how", ["below", "said by the judge"])
async def test_a_baseline_that_is_too_fast(tmp_path: Path, how: str) -> None:
    """Nothing faster could be told from it, so a campaign does not begin: what to do is said, and nobody is charged."""
    script = RelayScript(seconds=-1.0 if how == "below" else 1.0, at_most=how != "below")
    async with scripted(write_relay_task(tmp_path / "task", SECONDS, STRICT), script, {"value": 3}) as session:
        with pytest.raises(
            BaselineFailed, match=r"seconds is below what the channel can tell \(.* after 1 calls, at a"
        ):
            await session.run()
        assert session.charged == 0


@pytest.mark.parametrize("busy", [1, 9], ids=["for a moment", "for good"])
async def test_a_new_cohort_begins_with_no_bound(tmp_path: Path, busy: int) -> None:
    """Where the fleet changed, a baseline that the channel cannot tell from none is run again; where it stays so,
    nothing is kept, since a change that does nothing would be called better.
    """
    script = RelayScript()
    timed = TIMING.replace("timing = true", 'timing = true\nbinds = ["cpu"]')
    async with scripted(write_relay_task(tmp_path / "task", timed), script, {"value": 1}) as session:
        bounds = 0

        def move(event: e.AttemptEnded) -> None:
            script.cpu = "another"

        def disturb(event: e.TrialIntended) -> None:
            nonlocal bounds
            again = event.purpose is Purpose.RERUN and event.node == "1"
            bounds += again
            script.at_most = again and bounds <= busy

        session.when(e.AttemptEnded, move)
        session.when(e.TrialIntended, disturb)
        await session.run()
        state = session.bench.state
        reruns = [it for it in state.trials_of("1") if it.purpose is Purpose.RERUN]
        assert reruns[0].verdict is None
        assert "below what the channel can tell" in (reruns[0].fault or "")
        assert not any(it.at_most for it in state.nodes["1"].verdicts.values())
        assert state.nodes["1.1"].kept is (busy == 1), state.nodes["1.1"].why
        assert state.nodes["1.1"].undecided is (busy != 1)
        assert not session.bench.book.accounts.holds


@pytest.mark.parametrize(
    ("again", "told"),
    [
        ((0.001, 0.0001), (0.001, 0.001)),
        ((0.05, 0.00001), (0.005, 0.005)),
        ((0.009, 0.03), (0.005, 0.02)),
        ((0.0049, 0.019), (0.005, 0.02)),
    ],
    ids=["calm", "slowed down", "busier", "much the same"],
)
async def test_t27_the_channel_is_measured_again(
    task: Path, monkeypatch: pytest.MonkeyPatch, again: tuple[float, float], told: tuple[float, float]
) -> None:
    """T27, T80: what is clearly less than before counts; what a candidate makes slower while it is there does not, and
    a jitter below what is taken off is not believed any more.
    """
    script = RelayScript()
    monkeypatch.setattr(Conversation, "_empty_calls", channel_of(*[(0.005, 0.02)] * 4, again))
    async with scripted(task, script, {"value": judge("measures")}) as session:
        await session.run()
        calibration = session.bench.state.trials["1.1-1"].calibration
        assert calibration
        assert (calibration.median_s, calibration.jitter_s) == told


async def test_a_judge_that_measures_again(task: Path) -> None:
    """It answers the empty calls, is told the channel's figures, and goes on; that is no call of the candidate's."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("measures")}) as session:
        await session.run()
        calibration = session.bench.state.trials["1.1-1"].calibration
        assert calibration
        assert script.measured[0] == {"median": calibration.median_s, "jitter": calibration.jitter_s}
        assert (calibration.measured, calibration.calls) == (2, 1)
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED


async def test_a_judge_that_rehearses(task: Path) -> None:
    """Its request comes back to its own chamber, timed; the candidate hears nothing of it, and it is no call."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("rehearses")}) as session:
        await session.run()
        asked, told, *_ = script.rehearsed
        assert asked == b"Q" + struct.pack("<I", 3) + b"C" + encode(["solve", 1])
        assert (told[:1], len(told)) == (b"R", 9)
        assert struct.unpack_from("<d", told, 1)[0] > 0
        assert {request[:1] for request in script.requests} == {b"L", b"N", b"C"}
        calibration = session.bench.state.trials["1.1-1"].calibration
        assert calibration
        assert calibration.calls == 1
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED


@pytest.mark.parametrize(("unpacking", "most"), [(0.002, 0.2), (60.0, 30.0)], ids=["slowed down", "honest"])
async def test_t100_a_rehearsal_that_is_slowed_down(
    task: Path, monkeypatch: pytest.MonkeyPatch, unpacking: float, most: float
) -> None:
    """T100: a candidate that burns while its judge rehearses takes nothing more off its time. What is taken off is no
    more than what our own machine computes, and the way as it was before the candidate was there; where that is more,
    the control, it is what the rehearsal took.
    """

    async def unpacked(values: memoryview) -> float:
        assert bytes(values) == encode(["solve", 1])
        return unpacking

    monkeypatch.setattr(relay, "unpacking_s", unpacked)
    monkeypatch.setattr(Conversation, "_empty_calls", channel_of((0.001, 0.02)))
    monkeypatch.setattr(Conversation, "_carry", carried)
    script = RelayScript()
    async with scripted(task, script, {"value": judge("rehearses slowly")}) as session:
        await session.run()
        _, told, *_ = script.rehearsed
        (taken,) = struct.unpack_from("<d", told, 1)
        assert taken == pytest.approx(0.001 + (30 + 4) * 0.0001 + 0.002) if unpacking < 1 else 0.3 <= taken < most


async def test_what_our_own_machine_takes_is_the_judges_time(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both chambers wait meanwhile, and last no longer than both sides' turns together."""

    async def unpacked(_: memoryview) -> float:
        clock.append(10 * WALL_S)
        return 0.0

    clock: list[float] = []
    monkeypatch.setattr(relay, "unpacking_s", unpacked)
    monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(clock)))
    async with scripted(task, RelayScript(), {"value": judge("rehearses")}) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].why == "the judge cannot score it: judge timed out"
    assert clock


async def carried(_: Conversation) -> float:
    return 0.0001


async def test_what_a_byte_takes_is_measured_before_the_candidate_is_there(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By empty calls with many bytes, to the judge's chamber alone."""
    asked: list[tuple[Side, bool]] = []
    real = Conversation._ask

    async def ask(talk: Conversation, side: Side, payload: bytes) -> Any:
        if len(payload) > 1000:
            asked.append((side, Side.CANDIDATE in talk._turns))
        return await real(talk, side, payload)

    monkeypatch.setattr(Conversation, "_ask", ask)
    async with scripted(task, RelayScript(), {"value": 3}) as session:
        await session.run()
    assert set(asked) == {(Side.JUDGE, False)}


async def test_a_judge_that_rehearses_badly(task: Path) -> None:
    """What is no answer to its own request breaks the protocol, as anything else that no judge may say."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("rehearses badly")}) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is Ending.INVALID


async def test_a_large_request_reaches_the_candidate_while_it_comes(task: Path) -> None:
    """Without the byte that says so; it is a call like any other."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("streams")}) as session:
        await session.run()
        assert set(script.streamed) == {judge("streams")}
        assert b"C" + encode(["solve", LARGE]) in script.requests
        calibration = session.bench.state.trials["1.1-1"].calibration
        assert calibration
        assert calibration.calls == 2
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED


@pytest.mark.parametrize(
    ("params", "ending"),
    [
        ({"value": judge("streams half")}, Ending.INVALID),
        ({"value": judge("streams"), "do": "die when large"}, Ending.FAILED),
    ],
    ids=["judge dies", "candidate dies"],
)
async def test_one_of_the_two_ends_while_a_request_is_handed_on(
    task: Path, params: dict[str, int | str], ending: Ending
) -> None:
    """Each pays for its own: a judge that breaks is tried on the baseline, a candidate ends as in any other call."""
    async with scripted(task, RelayScript(), params) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is ending


def channel_of(*figures: tuple[float, float]) -> Callable[[object, object], Awaitable[tuple[float, float]]]:
    """Median and jitter of empty calls, one after the other; the last for ever."""
    left = list(figures)

    async def empty_calls(_: object, __: object) -> tuple[float, float]:
        return left.pop(0) if len(left) > 1 else left[0]

    return empty_calls


async def test_tuning(tmp_path: Path) -> None:
    """Tuning meets the judge's cheaper command; the best draft is promoted."""
    task = write_relay_task(tmp_path / "task", TUNE)
    async with scripted(task, RelayScript(), [{"value": 3}, {"value": 9}, {"value": 4}]) as session:
        await session.run()
        state = session.bench.state
        assert state.nodes["1.1"].params == {"value": 9}
        tuned = state.trials["1.1-1"].verdict
        assert tuned
        assert (tuned.mode, tuned.metrics["tuned"]) == (Mode.TUNE, 1.0)


async def test_a_backend_without_relay(task: Path) -> None:
    """It is refused in one line before anything is started."""
    script = RelayScript()
    site = make_site(script)
    assert isinstance(site.backend, ScriptedBackend)
    object.__setattr__(site.backend.capabilities, "relay", False)
    with pytest.raises(
        TaskError, match=r'judge.mode is "relay", but this backend \(fake.*\) has no relay; use another'
    ):
        async with scripted(task, script, {"value": 3}, site=site):
            pass
    assert script.commands == []


async def test_show_tells_the_channel(task: Path) -> None:
    """Median, jitter, calls and seed of a trial are shown: a time can be believed, and its inputs drawn again."""
    script = RelayScript()
    async with scripted(task, script, {"value": 3}) as session:
        await session.run()
    shown = runner().invoke(cli, ["show", "1.1", str(task)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.output.splitlines() if "an empty call takes" in line]
    assert [line.split()[0] for line in lines] == ["1.1-1", "1.1-2"]
    assert lines[0].rstrip().endswith(f" ms; seed {script.seeds[1]}")
    assert "; 1 call of " in lines[0]
