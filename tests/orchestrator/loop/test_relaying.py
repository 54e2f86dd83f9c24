"""Where the judge calls the candidate: how it ends, who pays, and what is on record of it."""

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.loop.money import worst_of_trial
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
from tests.orchestrator.loop.relay_script import LARGE, TIMING, WALL_S, RelayScript, judge, write_relay_task
from tests.orchestrator.loop.script import ScriptedBackend
from tests.orchestrator.loop.scripted import GUARD, TUNE, Point, make_site, ran, scripted, worst_of
from tests.orchestrator.loop.telling import in_moments
from tests.sandbox.scripted import Hiccup


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_relay_task(tmp_path / "task")


async def test_scored(task: Path) -> None:
    """Both chambers are intended before they are there and ended together; the verdict is of tier relay. The judge is
    given a seed, new each time and on record, the candidate's functions and the channel's figures, which `show` tells.
    """
    script = RelayScript()
    session = await ran(task, script, {"value": 3}, {"value": 2})
    assert session.champion == "1.1"
    trials = session.state.trials
    trial = trials["1.1-1"]
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
    kept = [it for name in ("1-1", "1.1-1", "1.1-2", "1.2-1") if (it := trials[name].calibration)]
    assert [it.seed for it in kept] == script.seeds
    assert len(set(script.seeds)) == 4
    assert [it.calls for it in kept] == [1] * 4
    assert [it["functions"] for it in script.begun] == [["solve"]] * 4
    assert [(it["median"], it["jitter"]) for it in script.begun] == [(it.median_s, it.jitter_s) for it in kept]
    assert all(it.median_s > 0 <= it.jitter_s for it in kept)
    assert not any(seed.encode() in request for seed in script.seeds for request in script.requests)
    assert script.requests[0] == b"L"
    assert set(script.requests[1:-1]) >= {b"N"}
    shown = runner().invoke(cli, ["show", "1.1", str(task)], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.output.splitlines() if "an empty call takes" in line]
    assert [line.split()[0] for line in lines] == ["1.1-1", "1.1-2"]
    assert lines[0].rstrip().endswith(f" ms; seed {script.seeds[1]}")
    assert "; 1 call of " in lines[0]


@in_moments
async def test_t27_slow_to_do_nothing(task: Path) -> None:
    """A candidate that takes its time over empty calls does not get that time taken off: the judge's channel counts.
    What a call itself takes the judge is told by our clock.
    """
    script = RelayScript()
    session = await ran(task, script, {"value": 3, "null": 0.1, "takes": 1.0})
    calibration = session.state.trials["1.1-1"].calibration
    assert calibration
    assert calibration.median_s < 0.1
    assert script.elapsed[-1] >= 1.0 > script.elapsed[0]


CANDIDATE_DOES = {
    "die": (Ending.FAILED, "the chamber ended by itself"),
    "load die": (Ending.FAILED, "the chamber ended by itself"),
    "out of memory": (Ending.OUT_OF_MEMORY, "over its memory limit"),
    "load out of memory": (Ending.OUT_OF_MEMORY, "over its memory limit"),
    "too slow": (Ending.TIMED_OUT, f"loading and all calls together took more than {WALL_S:g} s"),
    "load too slow": (Ending.TIMED_OUT, f"loading and all calls together took more than {WALL_S:g} s"),
    "early": (Ending.TAMPERED, "frame with a wrong nonce: the reply does not echo the nonce of its request"),
    "does not load": (Ending.FAILED, "it does not load: no"),
    "loads nothing": (Ending.FAILED, "what it answers when it is loaded is no list of functions"),
    "says much": (Ending.FAILED, "an empty call was answered by something"),
    "break off": (Ending.FAILED, "the fake provider's connection broke; a control job passed, so the candidate pays"),
}


@in_moments
async def test_the_candidate_ends_it(task: Path) -> None:
    """Whatever the candidate does to end it is its own ending; it pays, and the next one is scored. T81: a second
    answer to the same call, while the judge thinks, is tampering. T80: one that dies between calls fails at the next
    one; with no next one, its answers count. Each side's limit counts its own turns: a candidate that uses up most of
    its time is not late for the judge's.
    """
    expected = {**CANDIDATE_DOES, "twice": (Ending.TAMPERED, "frame extra: a frame that nobody asked for")}
    again, long = judge("calls again"), 0.6 * WALL_S
    points: list[Point] = [{"value": again if do == "twice" else 3, "do": do} for do in expected]
    points += [{"value": again, "do": "die after"}, {"value": 1, "do": "die after"}]
    points += [{"value": again, "takes": long}, {"value": 1, "takes": long}, {"value": 5}]
    session = await ran(task, RelayScript(), *points)
    state = session.state
    for number, (do, ended) in enumerate(expected.items(), 1):
        trial = state.trials[f"1.{number}-1"]
        assert (trial.ending, trial.reason) == ended, do
        assert (state.nodes[f"1.{number}"].ending, trial.judged, trial.judging) == (ended[0], False, None), do
        assert trial.spent.milliseconds > 0, do
    rest = [state.nodes[f"1.{number}"].ending for number in range(len(expected) + 1, len(points) + 1)]
    assert rest == [Ending.FAILED, Ending.SCORED, Ending.TIMED_OUT, Ending.SCORED, Ending.SCORED]
    assert session.charged == len(points)


JUDGE_DOES = {
    "crash": "judge failed",
    "think": "judge timed out",
    "babble": "judge protocol broken",
    "no files": "judge protocol broken",
    "odd name": "judge protocol broken",
    "too much": "judge protocol broken",
    "rehearses badly": "judge protocol broken",
    "no metric": "metric missing: seconds",
}


@in_moments
async def test_t79_the_judge_breaks(tmp_path: Path) -> None:
    """A judge that breaks meets the baseline before anybody pays; where it is well there, the candidate is invalid."""
    script, points = RelayScript(), [{"value": judge(does)} for does in JUDGE_DOES]
    session = await ran(write_relay_task(tmp_path / "task", TIMING), script, *points)
    controls = [event for event in session.of(e.JudgingEnded) if event.on_baseline]
    assert session.charged == len(controls) == len(points)
    for (number, (does, fault)), control in zip(enumerate(JUDGE_DOES.items(), 1), controls, strict=True):
        node, trial = session.nodes[f"1.{number}"], session.state.trials[f"1.{number}-1"]
        assert (node.ending, node.why) == (Ending.INVALID, f"the judge cannot score it: {fault}"), does
        assert control.fault is None
        assert node.spent.milliseconds >= control.spent.milliseconds > 0
        assert (trial.ended, trial.judged, trial.judging) == (True, True, None), does
    assert script.commands == ["judge", "trial"] * (1 + 2 * len(points))


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
        assert session.state.trials["1.1-1"].ending is Ending.INFRASTRUCTURE
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)
        assert session.accounts.losses.seconds > 0


async def test_no_solution(task: Path) -> None:
    """A judge that says so ends it as invalid, without asking about the baseline; run's line has the judge's reason."""
    script = RelayScript()
    session = await ran(task, script, {"value": judge("no solution")})
    node = session.nodes["1.1"]
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
        trial = session.state.trials["1.1-1"]
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
        assert "silent for 6.0 s of a call" in session.state.trials["1.1-1"].reason


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
        assert session.state.trials["1.1-1"].ending is None
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)


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
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)


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
    session = await ran(task, script, {"value": 3})
    (requeued,) = session.of(e.AttemptRequeued)
    assert requeued.ending is Ending.INFRASTRUCTURE
    first, second = (session.state.trials[f"1.1-{number}"] for number in (1, 2))
    assert (first.ending, first.judging) == (Ending.INFRASTRUCTURE, None)
    assert second.verdict
    assert session.charged == 1


@pytest.mark.parametrize("kind", [e.JudgingIntended, e.TrialEnded])
async def test_stop_and_resume(tmp_path: Path, kind: type[e.Event]) -> None:
    """Stopped with two chambers under way, or between their ends, a resume ends with the same verdicts. Tuning meets
    the judge's cheaper command; the best draft is promoted.
    """
    points: list[list[Point]] = [[{"value": 3}, {"value": 4}], [{"value": 5}, {"value": 1}]]
    task = write_relay_task(tmp_path / "task", TUNE, GUARD)
    session = await ran(task, RelayScript(), *points, stop=(kind, 3))
    assert not session.accounts.holds
    assert all(it.ended and it.judging is None for it in session.state.trials.values())
    session = await ran(task, RelayScript(), *points, how=How.RESUME)
    finished = session.ends[-1]
    assert finished.champion
    assert finished.champion.params == {"value": 5}
    assert session.charged == 2
    verdicts = [it.verdict for it in session.state.trials.values() if it.node == "1.1" and it.verdict]
    assert [it.metrics["tuned"] for it in verdicts if it.mode is Mode.TUNE] == [1.0] * 2


@pytest.mark.parametrize("who", ["candidate", "judge"])
async def test_interrupted(task: Path, who: str) -> None:
    """What both chambers cost until the stop is booked, trial and judging alike."""
    point: Point = {"value": 3, "do": "wait"} if who == "candidate" else {"value": judge("wait")}
    session = await ran(task, RelayScript(), point, stop=(e.JudgingIntended, 2))
    node, trial = session.nodes["1.1"], session.state.trials["1.1-1"]
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


async def test_a_large_request_reaches_the_candidate_while_it_comes(task: Path) -> None:
    """Without the byte that says so; it is a call like any other. Where one of the two ends meanwhile, each pays for
    its own: a judge that breaks is tried on the baseline, a candidate ends as in any other call.
    """
    script = RelayScript()
    half: Point = {"value": judge("streams half")}
    dies: Point = {"value": judge("streams"), "do": "die when large"}
    session = await ran(task, script, {"value": judge("streams")}, half, dies)
    assert set(script.streamed) == {judge("streams")}
    assert b"C" + encode(["solve", LARGE]) in script.requests
    calibration = session.state.trials["1.1-1"].calibration
    assert calibration
    assert calibration.calls == 2
    endings = [node.ending for node in session.nodes.values()]
    assert endings[1:] == [Ending.SCORED, Ending.INVALID, Ending.FAILED]


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
