"""The line to the place where machines are goes away while SkyPilot's server, which is here, answers (T86)."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import Ending, Outcome, Refused, Silent, Unavailable
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.end import PAUSE_S
from sandbox.backends.skypilot.provisioner import Ask
from tests.sandbox.skypilot.connecting import BUNDLE, JOB, Connect, connected, settings
from tests.sandbox.skypilot.yard import Fault, Yard, YardProvisioner
from tests.virtual_time import VirtualTime

pytestmark = pytest.mark.touching("skypilot")

PATIENCE_S = 180.0

Fate = Callable[[str], Fault | None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


def once(method: str, act: Callable[[], None]) -> Fate:
    """Something happens as soon as a method is called."""
    left = [act]

    def fate(called: str) -> None:
        if called == method and left:
            left.pop()()

    return fate


def away(yard: Yard, fault: str, seconds: float) -> Callable[[], None]:
    def begin() -> None:
        getattr(yard.line, fault)()
        asyncio.get_running_loop().call_later(seconds, yard.line.heal)

    return begin


async def rented(folder: Path, yard: Yard) -> tuple[SkyPilotBackend, YardProvisioner]:
    provisioner = YardProvisioner(yard)
    return await connected(provisioner, settings(folder), pause_s=PAUSE_S), provisioner


async def trial(folder: Path, yard: Yard, fate: Fate) -> Outcome:
    """A trial on a machine that is up when it begins."""
    backend, provisioner = await rented(folder, yard)
    try:
        async with await backend.open(JOB) as chamber:
            provisioner.fate_of = fate
            return await chamber.run(BUNDLE)
    finally:
        provisioner.fate_of = lambda _: None
        await backend.close()


@pytest.mark.parametrize("seconds", [1.0, 120.0])
@pytest.mark.parametrize("step", ["send", "submit", "call"])
def test_T86_a_trial_is_taken_up_again(
    tmp_path: Path, clock: VirtualTime, yard: Yard, step: str, seconds: float
) -> None:
    """However short the cut, and whatever it hit: what did not get through is asked once more."""
    outcome = clock.run(trial(tmp_path, yard, once(step, away(yard, "cut", seconds))))
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"answer": b"42"})
    assert not yard.clusters


@pytest.mark.parametrize("fault", ["cut", "stall"])
def test_T86_nobody_pays_for_a_place_that_stays_away(
    tmp_path: Path, clock: VirtualTime, yard: Yard, fault: str
) -> None:
    """Once our patience is over it is evidence from outside, though SkyPilot's own server answers all the while."""
    with pytest.raises(Silent, match="did not answer for") as caught:
        clock.run(trial(tmp_path, yard, once("submit", away(yard, fault, 10_000))))
    assert caught.value.usd > 0


def test_T86_a_server_of_skypilot_that_answers_nobody(tmp_path: Path, clock: VirtualTime, yard: Yard) -> None:
    """The same evidence, though the place would answer; the machine is ended once the server is back."""

    def go() -> None:
        yard.answers = False
        asyncio.get_running_loop().call_later(PATIENCE_S + 30, setattr, yard, "answers", True)

    with pytest.raises(Silent, match="did not answer for"):
        clock.run(trial(tmp_path, yard, once("submit", go)))
    assert not yard.clusters


def test_a_machine_alone_that_does_not_answer_proves_nothing(tmp_path: Path, clock: VirtualTime, yard: Yard) -> None:
    """The place answers: then it may be the candidate's own doing, and a control job has to tell."""
    with pytest.raises(Unavailable, match="failed on purpose") as caught:
        clock.run(trial(tmp_path, yard, lambda method: Fault.BEFORE if method == "submit" else None))
    assert not isinstance(caught.value, Silent)


def test_T86_the_end_of_a_machine_waits_for_its_place(tmp_path: Path, clock: VirtualTime, yard: Yard) -> None:
    """It is booked for what it cost, not for the longest life that it could have had."""
    outcome = clock.run(trial(tmp_path, yard, once("down", away(yard, "cut", 120))))
    assert outcome.usage.usd < 60, "by the real clock: two minutes by the other"
    assert not yard.clusters


def test_who_closes_does_not_wait_for_a_place_that_is_away(tmp_path: Path, clock: VirtualTime, yard: Yard) -> None:
    """What it cannot end is left to the warden."""

    async def work() -> float:
        backend, _ = await rented(tmp_path, yard)
        await backend.open(JOB)
        yard.line.cut()
        began = time.monotonic()
        await backend.close()
        return time.monotonic() - began

    assert clock.run(work()) < PATIENCE_S / 2
    assert yard.clusters


class NoSuchMachine(YardProvisioner):
    """What SkyPilot says of a cluster whose nodes it cannot list."""

    async def quote(self, place: str, ask: Ask) -> float | None:
        raise Refused("price: there is no such machine")


async def test_T86_a_place_that_is_away_refuses_nothing(owner: Connect, yard: Yard) -> None:
    """Refused would end the campaign. Of a place that answers, SkyPilot's word counts; and the probe asks the place,
    else the breaker would let attempts through that can rent nothing.
    """
    backend = await owner(NoSuchMachine(yard))
    await backend.answers()
    with pytest.raises(Refused, match="no such machine"):
        await backend.open(JOB)
    yard.line.cut()
    with pytest.raises(Unavailable, match="no such machine"):
        await backend.open(JOB)
    with pytest.raises(Unavailable, match="the line is down"):
        await backend.answers()
    yard.line.heal()
