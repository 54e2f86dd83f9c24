"""Our backend with SkyPilot itself on a real Slurm cluster."""

import asyncio
import pickle
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from own_processes import processes_saying
from private_slurm import PrivateSlurm
from sandbox import Bundle, Job, Limits, SkyPilotConfig
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.conformance import programs
from sandbox.conformance.check import SMALL
from sandbox.errors import Refused, Unavailable
from sandbox.job import Ending, Outcome
from slurm_files import ABSENT_GPU, CPU_USD, CPUS, GIB_USD
from tests.sandbox.skypilot.connecting import Purse
from tests.slurm.faults import left_after, until, while_the_launch_is_under_way, while_the_program_runs

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]

HOURLY = 1 * CPU_USD + 2 * GIB_USD  # SMALL asks for one processor and, with what is ours, two GiB


async def connected(cluster: PrivateSlurm, folder: Path, **wanted: Any) -> SkyPilotBackend:
    places = {"owners_folder": folder / "owners", "inputs_folder": folder / "inputs"}
    return await SkyPilotBackend.connect(SkyPilotConfig(infra=cluster.infra, **places, **wanted))


async def trial(backend: SkyPilotBackend, job: Job, bundle: Bundle | None = None) -> Outcome:
    async with await backend.open(job) as chamber:
        return await chamber.run(bundle or Bundle({}))


async def test_a_fresh_machine_for_one_trial(rented: PrivateSlurm, sky: Any, tmp_path: Path) -> None:
    """An image that it lacks is shipped, it ends itself whoever forgets it, and what is booked is price x seconds."""
    backend = await connected(rented, tmp_path, autodown=120, lifetime=1200)
    try:
        assert await backend.usd_per_second(SMALL) == pytest.approx(HOURLY / 3600)
        asked = time.monotonic()
        rented.command("docker", "image", "prune", "--all", "--force")
        assert rented.command("docker", "images", "--quiet") == ""
        chamber = await backend.open(programs.WRITE.job(limits=SMALL))
        assert rented.command("docker", "images", "--quiet"), "the image was shipped"
        opened = time.monotonic()
        assert chamber.facts["cpu"]
        (job,) = rented.jobs()
        idle = autostop_on_the_machine(rented, job.name)
        assert (idle.down, idle.wait_for.value) == (True, "none"), "it goes down though a job seems to run"
        assert 0 < idle.autostop_idle_minutes < 60
        assert 0 < minutes(rented, job.number) < 120, "Slurm ends it at an absolute time"
        assert [process for process in rented.processes() if "sandbox.box.timer" in process.words], (
            "so does a timer on the machine"
        )
        outcome = await chamber.run(programs.QUESTION)
        ended = time.monotonic()
    finally:
        await backend.close()
    assert (outcome.ending, outcome.exit_code) == (Ending.COMPLETED, 0), outcome
    assert outcome.outputs == {"answer": b"six times seven 42\n", "deep/er/file": b"\x00\xff"}
    assert HOURLY / 3600 * (opened - asked) < outcome.usage.usd < HOURLY / 3600 * (ended - asked)
    (bill,) = [row for row in sky.get(sky.cost_report()) if row["name"] == chamber.name]
    assert bill["total_cost"] == pytest.approx(HOURLY / 3600 * bill["duration"])
    assert outcome.usage.usd >= bill["total_cost"] * 0.9, "SkyPilot's own bill, to the whole second, is no larger"


async def test_trials_on_one_warm_machine(rented: PrivateSlurm, tmp_path: Path) -> None:
    """One after the other, and each ends as on one's own engine; the purse pays. A killed one is the machine's last."""
    backend = await connected(rented, tmp_path, warm=1, autodown=300, lifetime=1800)
    backend.purse = purse = Purse()
    seconds = "271.828182845"
    try:
        done = await trial(backend, programs.WRITE.job(limits=SMALL), programs.QUESTION)
        assert done.outputs["answer"] == b"six times seven 42\n", done
        (machine,) = rented.jobs()
        failed = await trial(backend, programs.EXIT_3.job(limits=SMALL))
        assert (failed.ending, failed.exit_code) == (Ending.FAILED, 3)
        late = await trial(backend, Job(command=("sleep", seconds), limits=SMALL.model_copy(update={"wall": 3})))
        assert late.ending is Ending.TIMED_OUT, late
        assert processes_saying(f"^sleep {seconds}") == []
        assert rented.jobs() == [machine]
        async with await backend.open(Job(command=("sleep", seconds), limits=SMALL)) as chamber:
            running = asyncio.create_task(chamber.run(Bundle({})))
            await until(lambda: bool(processes_saying(f"^sleep {seconds}")), "the program runs")
            await chamber.kill()
            assert (await running).ending is Ending.KILLED
        assert processes_saying(f"^sleep {seconds}") == []
        assert rented.jobs() == []
    finally:
        await backend.close()
    assert [outcome.usage.usd for outcome in (done, failed, late)] == [0, 0, 0]
    ((name, (paid,)),) = purse.settled.items()
    assert 0 < paid < purse.reserved[name]


async def test_machines_that_do_not_come(rented: PrivateSlurm, tmp_path: Path) -> None:
    """A GPU that the place has not is refused; a full node is a matter of time. Neither leaves or costs a machine."""
    backend = await connected(rented, tmp_path)
    frugal = await connected(rented, tmp_path, usd_per_hour=HOURLY / 2)
    rented.command("sbatch", f"--cpus-per-task={CPUS}", "--output=/dev/null", "--job-name=full", "--wrap=sleep 600")
    try:
        with pytest.raises(Refused, match=ABSENT_GPU):
            await backend.open(Job(command=("true",), limits=Limits(gpu=f"{ABSENT_GPU}:1")))
        with pytest.raises(Unavailable, match="capacity") as caught:
            await backend.open(Job(command=("true",), limits=SMALL))
        assert [job.name for job in rented.jobs()] == ["full"]
        assert caught.value.usd >= 0
        with pytest.raises(Refused, match="ceiling"):
            await frugal.open(Job(command=("true",), limits=SMALL))
    finally:
        rented.command("scancel", "--name=full")
        await frugal.close()
        await backend.close()
    await until(lambda: rented.jobs() == [], "the node is empty")


async def test_owners_that_are_killed(rented: PrivateSlurm, tmp_path: Path) -> None:
    """While a launch is under way and while a program runs: machine, request and program are ended by the warden."""
    provisioner = real_provisioner()
    strikes = (while_the_launch_is_under_way, while_the_program_runs)
    left = await asyncio.gather(
        *(left_after(strike, rented, provisioner, tmp_path / strike.__name__) for strike in strikes)
    )
    assert left == [[], []]


def real_provisioner() -> Provisioner:
    from sandbox.backends.skypilot.sdk import SkyPilot

    return SkyPilot()


def autostop_on_the_machine(cluster: PrivateSlurm, name: str) -> Any:
    """What SkyPilot's own process on the machine goes by."""
    with sqlite3.connect(f"file:{cluster.home}/runtime/{name}/.sky/skylet_config.db?mode=ro", uri=True) as database:
        ((kept,),) = database.execute("SELECT value FROM config WHERE key = 'autostop_config'")
    return pickle.loads(kept)  # noqa: S301 nothing hostile was on that machine yet


def minutes(cluster: PrivateSlurm, number: int) -> float:
    """How long Slurm lets a job live: [days-]hours:minutes:seconds, or less of it."""
    text = cluster.command("squeue", "--noheader", "--format=%l", f"--jobs={number}").strip()
    days, _, clock = text.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return int(days or 0) * 1440 + seconds / 60
