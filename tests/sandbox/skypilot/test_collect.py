"""Whether a trial still runs is asked over our own connection: SkyPilot's server takes in whatever a machine says."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import pytest

from sandbox import Limits, Lost, Unavailable
from sandbox.backends.skypilot.machine import ROOT, Machine
from sandbox.backends.skypilot.places import Kind
from sandbox.backends.skypilot.provisioner import Ask, Wanted
from sandbox.box.parcel import parcel
from sandbox.box.report import LOG, OUTPUTS, PAGE
from sandbox.link import Deadlines
from tests.sandbox.skypilot.grounds import ENDED, ThisMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

NAME, TRIAL = "bd-x", "trial"
LOOKED_S = 2.5  # the machine looks every two seconds whether a trial still runs


class Started:
    """A machine whose interpreter is a line of shell, with one trial on it."""

    def __init__(self, ground: ThisMachine, machine: Machine) -> None:
        self.ground = ground
        self.machine = machine
        self.folder = ground.home / ROOT.removeprefix("~/") / "trials" / TRIAL
        self.folder.mkdir(parents=True)

    async def start(self, program: str) -> None:
        python = self.folder.parent.parent / f"venv-{parcel().digest}" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{program}\n")
        python.chmod(0o755)
        await self.machine.start(TRIAL)

    async def until_left(self, name: str) -> None:
        while not (self.folder / name).exists():  # noqa: ASYNC110  the program tells nobody
            await asyncio.sleep(0.02)

    async def collect(self, seconds: float) -> bytes:
        return (await self.machine.collect(TRIAL, Limits(), time.monotonic() + seconds)).log


@pytest.fixture
async def started() -> AsyncIterator[Started]:
    grounds: list[ThisMachine] = []

    def make(name: str) -> ThisMachine:
        grounds.append(ThisMachine(name))
        return grounds[-1]

    provisioner = YardProvisioner(Yard(make))
    landed = await provisioner.launch(NAME, "slurm/yard", Wanted(Ask(1, 1), 60, 0, None), 10)
    yield Started(grounds[0], Machine(provisioner, NAME, landed, Kind.NODE, Deadlines()))
    await provisioner.down(NAME)


async def test_a_trial_that_was_killed_is_lost_soon(started: Started) -> None:
    """Nobody waits for the job's own end when nothing is left that could write an outcome."""
    await started.start("touch $3/ran; exec sleep 600")
    collecting = asyncio.create_task(started.collect(600))
    await started.until_left("ran")
    assert not collecting.done()
    os.killpg(started.ground.jobs[0].pid, signal.SIGKILL)
    with pytest.raises(Lost, match="ended without an outcome"):
        await asyncio.wait_for(collecting, 120)


async def test_a_trial_that_runs_is_not_given_up(started: Started) -> None:
    """Nor is one that has not begun: both are waited for until their time is up."""
    with pytest.raises(Unavailable, match="in time"):
        await started.collect(LOOKED_S)
    await started.start("exec sleep 60")
    with pytest.raises(Unavailable, match="in time"):
        await started.collect(LOOKED_S)


async def test_an_outcome_counts_although_the_trial_is_over(started: Started) -> None:
    """Who has ended wrote it before, so it is looked for once more."""
    archived = {PAGE: ENDED.page.model_dump_json(), LOG: "hi", OUTPUTS: ""}
    writes = "; ".join(f"printf %s '{text}' >$3/new/{name}" for name, text in archived.items())
    await started.start(f"mkdir $3/new; {writes}; tar -cf $3/new/{OUTPUTS} -T /dev/null; mv $3/new $3/outcome")
    await asyncio.to_thread(started.ground.jobs[0].wait, 20)
    assert await started.collect(20) == b"hi"


async def test_a_machine_without_locks(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be had, a trial is waited for until its time is up; it runs all the same."""
    flock = started.ground.home / "bin" / "flock"
    flock.parent.mkdir()
    flock.write_text("#!/bin/sh\nexit 1\n")
    flock.chmod(0o755)
    monkeypatch.setenv("PATH", str(flock.parent), prepend=":")
    await started.start("touch $3/ran")
    await asyncio.to_thread(started.ground.jobs[0].wait, 20)
    assert (started.folder / "ran").exists()
    with pytest.raises(Unavailable, match="in time"):
        await started.collect(LOOKED_S)


async def test_T86_a_trial_that_is_started_twice_runs_once(started: Started) -> None:
    """Nobody knows whether an order arrived whose answer was lost, so it is given again."""
    await started.start("echo ran >>$3/runs; exec sleep 60")
    await started.until_left("runs")
    await started.machine.start(TRIAL)
    assert await asyncio.to_thread(started.ground.jobs[1].wait, 120) == 0
    assert (started.folder / "runs").read_text() == "ran\n"
    assert started.ground.jobs[0].poll() is None
