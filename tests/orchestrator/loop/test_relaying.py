"""Where the judge calls the candidate: how it ends, who pays, and what is on record of it."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.domain.verdict import Mode, Tier
from orchestrator.loop.money import worst_of_trial
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.views.cli import cli
from orchestrator.wiring import Flags, How
from orchestrator.wiring.planning import plan_campaign
from sandbox import Job, Unavailable
from tests.clicking import runner
from tests.orchestrator.loop.relay_script import TIMING, WALL_S, RelayScript, judge, write_relay_task
from tests.orchestrator.loop.script import ScriptedBackend
from tests.orchestrator.loop.scripted import GUARD, TUNE, Point, make_site, scripted, worst_of


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
    async with scripted(task, script, {"value": 3, "takes": 0.2}) as session:
        await session.run()
        assert script.elapsed[-1] >= 0.2 > script.elapsed[0]


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
        assert node.why == f"the judge can not score it: {fault}"
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
    """A judge that says so ends it as invalid, without asking about the baseline."""
    script = RelayScript()
    async with scripted(task, script, {"value": judge("no solution")}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.ending, node.why) == (Ending.INVALID, "the judge says that it is no solution")
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
        assert round(1000 * plan.attempt_s) == 2 * amounts.as_row()["seconds"]  # it is replayed
        await session.run()


async def test_t80_the_other_sides_time(task: Path) -> None:
    """Each side's limit counts its own turns: a candidate that uses up most of its time is not late for the judge's."""
    points: list[Point] = [{"value": judge("calls again"), "takes": 0.6 * WALL_S}, {"value": 1, "takes": 0.6 * WALL_S}]
    async with scripted(task, RelayScript(), *points) as session:
        await session.run()
        state = session.bench.state
        assert (state.nodes["1.1"].ending, state.nodes["1.2"].ending) == (Ending.TIMED_OUT, Ending.SCORED)


async def test_below_the_jitter(tmp_path: Path) -> None:
    """A time that the channel can not tell from none is refused in one line, and the judge is not suspected."""
    script = RelayScript()
    async with scripted(write_relay_task(tmp_path / "task", TIMING), script, {"value": 3}) as session:

        def shrink(event: e.AttemptEnded) -> None:
            script.seconds = 0.0

        session.when(e.AttemptEnded, shrink)
        await session.run()
        node, trial = session.bench.state.nodes["1.1"], session.bench.state.trials["1.1-1"]
        assert node.ending is Ending.INVALID
        assert trial.calibration
        jitter = f"{trial.calibration.jitter_s:.3g}"
        told = f"seconds is below the channel's jitter of {jitter} s; let the judge time more work"
        assert node.why == f"the judge can not score it: {told}"
        assert script.commands == ["judge", "trial"] * 2


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
    assert lines[0].rstrip().endswith(f"1 call; seed {script.seeds[1]}")
