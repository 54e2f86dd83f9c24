"""Where the judge calls the candidate: what a call took, and what the channel cannot tell."""

import asyncio
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Purpose
from orchestrator.judge import relay
from orchestrator.judge.calibration import quieter
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.views.cli import cli
from orchestrator.views.live.tally import ended_line
from sandbox.backends.fake.backend import Guest
from tests.clicking import runner
from tests.orchestrator.loop.noise import noisy
from tests.orchestrator.loop.relay_script import STRICT, TIMING, WALL_S, RelayScript, judge, write_relay_task
from tests.orchestrator.loop.scripted import HELDOUT, Point, ran, scripted
from tests.orchestrator.loop.telling import in_moments


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_relay_task(tmp_path / "task")


def channel_of(*figures: tuple[float, float]) -> Callable[[object], tuple[float, float]]:
    """Median and jitter of empty calls, one after the other; the last for ever."""
    left = list(figures)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


SECONDS = '[[metrics]]\nname = "seconds"\ngoal = "lower"\ntiming = true\n'
MAY_BE_LESS = "seconds may be less: the channel cannot tell a shorter call from none"


@pytest.mark.parametrize("jitter_ms", [0.02, 20.0])
async def test_t27_too_fast_to_be_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jitter_ms: float) -> None:
    """A time that the channel cannot tell from none counts as the least that it can: the candidate is scored, it wins,
    and run, show and report say that it may be faster still. Never as no solution, and never as less.
    """
    script = RelayScript(seconds=0.035)
    task = write_relay_task(tmp_path / "task", SECONDS, STRICT)
    monkeypatch.setattr(relay, "spread", channel_of((0.001, jitter_ms / 1e3)))
    async with scripted(task, script, {"value": 3}) as session:

        def shrink(event: e.AttemptEnded) -> None:
            script.seconds = -0.001

        session.when(e.AttemptEnded, shrink)
        finished = await session.run()
        node, trial = session.nodes["1.1"], session.state.trials["1.1-1"]
        assert finished.champion == node
        assert (node.ending, session.charged) == (Ending.SCORED, 1)
        assert trial.verdict
        assert trial.verdict.metrics["seconds"] == pytest.approx(jitter_ms / 1e3)
        assert trial.verdict.at_most == ("seconds",)
        found = headline(session.state, node)
        assert MAY_BE_LESS in ended_line(node, found, session.bench.ranking.metrics, True).plain
    shown = runner().invoke(cli, ["show", "1.1", str(task)], env={"COLUMNS": "200"})
    assert "may be less" in shown.output
    told = runner().invoke(cli, ["report", str(task)])
    assert "so they may be faster than is said: 1.1" in told.output


async def test_repeats_that_are_too_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under noise, the repeats of a candidate that is too fast to be timed prove it better all the same, and what they
    come to is shown as what it is.
    """
    monkeypatch.setattr(relay, "spread", channel_of((0.001, 0.02)))
    task = write_relay_task(tmp_path / "task", SECONDS, noisy(repeats=8, champion=2))
    session = await ran(task, RelayScript(seconds=0.035, times={3: 0.0001}), {"value": 3})
    found = headline(session.state, session.nodes["1.1"])
    assert session.nodes["1.1"].kept
    assert found
    assert found.runs > 1
    assert found.metrics["seconds"] == pytest.approx(0.02)
    assert found.at_most == ("seconds",)


@pytest.mark.parametrize("baseline_too", [False, True])
async def test_held_out_and_too_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, baseline_too: bool) -> None:
    """On held-out data, too, the least that can be told counts; a ladder that begins with such a time is refused."""
    script = RelayScript(seconds=0.035)
    monkeypatch.setattr(relay, "spread", channel_of((0.001, 0.02)))
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
        assert session.nodes["1.1"].kept
        assert [(it.better, it.released) for it in session.of(e.HeldOutAsked)] == [(False, 0.035), (True, 0.02)]


async def test_a_time_that_the_judge_calls_a_bound(tmp_path: Path) -> None:
    """The judge's module knows best which of its times may have been less; its word is on record with the verdict."""
    script = RelayScript()
    async with scripted(write_relay_task(tmp_path / "task", TIMING), script, {"value": 3}) as session:

        def bound(event: e.AttemptEnded) -> None:
            script.at_most = True

        session.when(e.AttemptEnded, bound)
        await session.run()
        verdict = session.state.trials["1.1-1"].verdict
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
        state = session.state
        assert state.nodes["1.1"].kept
        assert state.nodes["1.2"].kept is kept, state.nodes["1.2"].why
        assert state.nodes["1.2"].undecided is (bounds == 9)
        assert seen == min(bounds + 1, 3)
        if bounds == 9:
            assert "seconds of 1.1 is only known to be at most 0.8" in (state.nodes["1.2"].why or "")
        found = headline(state, state.nodes["1.1"])
        assert found
        assert (found.runs, found.metrics["seconds"]) == (0, 0.8)
        assert not session.accounts.holds


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
        state = session.state
        reruns = [it for it in state.trials_of("1") if it.purpose is Purpose.RERUN]
        assert reruns[0].verdict is None
        assert "below what the channel can tell" in (reruns[0].fault or "")
        assert not any(it.at_most for it in state.nodes["1"].verdicts.values())
        assert state.nodes["1.1"].kept is (busy == 1), state.nodes["1.1"].why
        assert state.nodes["1.1"].undecided is (busy != 1)
        assert not session.accounts.holds


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
def test_t27_what_is_measured_again(again: tuple[float, float], told: tuple[float, float]) -> None:
    """T27, T80: what is clearly less than before counts; what a candidate makes slower while it is there does not, and
    a jitter below what is taken off is not believed any more.
    """
    assert quieter((0.005, 0.02), again) == told


async def test_t27_the_channel_is_measured_again(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both chambers the smaller median is taken off, and the larger jitter must be passed."""
    script = RelayScript()
    again = (0.003, 0.001), (0.002, 0.004)
    monkeypatch.setattr(relay, "spread", channel_of(*[(0.005, 0.02)] * 4, *again, (0.005, 0.02)))
    session = await ran(task, script, {"value": judge("measures")})
    calibration = session.state.trials["1.1-1"].calibration
    assert calibration
    assert (calibration.median_s, calibration.jitter_s) == (0.002, 0.004)


async def test_a_judge_that_asks_for_itself(task: Path) -> None:
    """One that measures again answers the empty calls, is told the channel's figures, and goes on. The request of one
    that rehearses comes back to its own chamber, timed, and the candidate hears nothing of it. Neither is a call.
    """
    script = RelayScript()
    session = await ran(task, script, {"value": judge("measures")}, {"value": judge("rehearses")})
    first, second = (session.state.trials[f"1.{number}-1"].calibration for number in (1, 2))
    assert first
    assert second
    assert script.measured[0] == {"median": first.median_s, "jitter": first.jitter_s}
    assert (first.measured, first.calls, second.measured, second.calls) == (2, 1, 1, 1)
    asked, told, *_ = script.rehearsed
    assert asked == b"Q" + struct.pack("<I", 3) + b"C" + encode(["solve", 1])
    assert (told[:1], len(told)) == (b"R", 9)
    assert struct.unpack_from("<d", told, 1)[0] > 0
    assert {request[:1] for request in script.requests} == {b"L", b"N", b"C"}
    assert [node.ending for node in session.nodes.values()] == [Ending.SCORED] * 3


@dataclass
class Carrying(RelayScript):
    """What carries many bytes takes its time, and a rehearsal has as many; `carried` is who was asked, in order."""

    carried: list[tuple[str, bytes]] = field(default_factory=list)

    async def program(self, guest: Guest) -> int:
        ask, reply = guest.request, guest.reply

        async def request() -> tuple[bytes, bytes] | None:
            asked = await ask()
            if asked:
                kind = b"large" if len(asked[1]) > 1 << 17 else asked[1][:1]
                self.carried.append((guest.job.command[0], kind))
                await asyncio.sleep(0.1 if asked[1][:1] == b"N" and kind == b"large" else 0.0)
            return asked

        guest.request = request  # type: ignore[method-assign]
        guest.reply = lambda nonce, payload: reply(nonce, payload + bytes(1 << 18) if payload[:1] == b"P" else payload)  # type: ignore[method-assign]
        return await super().program(guest)


@pytest.mark.parametrize(
    ("unpacking", "least", "most"), [(0.002, 0.102, 0.25), (60.0, 0.3, 30.0)], ids=["slow", "fair"]
)
def test_t100_a_rehearsal_that_is_slowed_down(
    task: Path, monkeypatch: pytest.MonkeyPatch, unpacking: float, least: float, most: float
) -> None:
    """T100: a candidate that burns while its judge rehearses takes nothing more off its time. What is taken off is no
    more than what our own machine computes, and the way as it was before the candidate was there, by empty calls with
    many bytes to the judge alone; where that is more, the control, it is what the rehearsal took.
    """

    async def unpacked(values: memoryview) -> float:
        assert bytes(values).startswith(encode(["solve", 1]))
        return unpacking

    monkeypatch.setattr(relay, "unpacking_s", unpacked)
    monkeypatch.setattr(relay, "spread", channel_of((0.001, 0.02)))
    script = Carrying()
    in_moments(run_all)(task, script, {"value": judge("rehearses slowly")})
    (taken,) = struct.unpack_from("<d", script.rehearsed[1], 1)
    assert least <= taken < most
    before = script.carried[: script.carried.index(("trial", b"L"))]
    assert before.count(("judge", b"large")) == 3
    assert ("trial", b"large") not in script.carried


async def run_all(task: Path, script: RelayScript, *points: Point) -> None:
    await ran(task, script, *points)


async def test_what_our_own_machine_takes_is_the_judges_time(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both chambers wait meanwhile, and last no longer than both sides' turns together."""

    async def unpacked(_: memoryview) -> float:
        clock.append(10 * WALL_S)
        return 0.0

    clock: list[float] = []
    monkeypatch.setattr(relay, "unpacking_s", unpacked)
    monkeypatch.setattr(relay, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(clock)))
    session = await ran(task, RelayScript(), {"value": judge("rehearses")})
    assert session.nodes["1.1"].why == "the judge cannot score it: judge timed out"
    assert clock
