"""Ten real faults: an owner killed at one step after the other, with its warden or without, and a machine lost.

Each is brought about from outside, on a real cluster, and then looked at until nothing of that owner is left.
"""

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from own_processes import Process, processes_saying
from private_slurm import PrivateSlurm
from sandbox.backends.skypilot.end import found, reap
from sandbox.backends.skypilot.names import mark_of
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.tenancy import Tenancy

OWNER = Path(__file__).with_name("doomed_renter.py")
REPOSITORY = OWNER.parents[2]
PATIENCE_S = 900.0  # a busy machine is slow, and that is no fault
LOOK_S = 1.0


class Renter:
    """The doomed owner, seen from outside. Its program carries a number that nothing else on the machine says."""

    def __init__(self, cluster: PrivateSlurm, folder: Path, seconds: int) -> None:
        self._cluster = cluster
        self._process: asyncio.subprocess.Process | None = None
        self._folder = folder
        self.sign = f"{seconds}.{uuid.uuid4().int % 10**12:012d}"
        self.owner = ""
        self.said: list[str] = []

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(OWNER),
            self._cluster.infra,
            str(self._folder),
            f"sleep {self.sign}",
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **self._cluster.environment(), "PYTHONPATH": str(REPOSITORY)},
        )
        self.owner = (await self.says("owner")).split()[1]

    async def says(self, word: str) -> str:
        """Wait for a line that begins so."""
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("it was not started")
        async for line in self._process.stdout:
            self.said.append(line.decode().rstrip())
            if self.said[-1].startswith(word):
                return self.said[-1]
        raise AssertionError(f"the owner ended before it said {word!r}; it said {self.said}")

    async def kill(self, *, warden: bool = False) -> None:
        """SIGKILL, to the warden first when it is to go too: it would see the end of its owner."""
        if warden:
            (process,) = processes_saying(rf"warden {self.owner}")
            os.kill(process.pid, signal.SIGKILL)
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def wait(self) -> None:
        if self._process:
            await self._process.wait()

    async def queued(self) -> None:
        await until(lambda: bool(self.jobs()), "Slurm has a job for it")

    async def running(self) -> None:
        await until(lambda: bool(self.programs()), "its program runs")

    def programs(self) -> list[Process]:
        return processes_saying(f"^sleep {self.sign}")

    def jobs(self) -> list[int]:
        return [job.number for job in self._cluster.jobs() if job.name.startswith(f"bd-{self.owner}")]

    async def left(self, provisioner: Provisioner) -> list[str]:
        names = [name for name in await found(provisioner) if getattr(mark_of(name), "owner", "") == self.owner]
        jobs = [f"job {number}" for number in self.jobs()]
        return names + jobs + [process.words for process in self.programs()]

    async def left_in_the_end(self, provisioner: Provisioner) -> list[str]:
        left: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while left := await self.left(provisioner):  # noqa: ASYNC110 others end it, and tell nobody
                    await asyncio.sleep(LOOK_S)
        return left


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` does it, when the owner is where it should be. `reaped`: only the next owner can clean up."""

    name: str
    strike: Callable[[Renter, PrivateSlurm], Awaitable[None]]
    seconds: int = 250
    reaped: bool = False

    async def left_after(self, cluster: PrivateSlurm, provisioner: Provisioner, folder: Path) -> list[str]:
        """What is left when everybody who cleans up has had their time."""
        renter = Renter(cluster, folder, self.seconds)
        try:
            await renter.start()
            await self.strike(renter, cluster)
            await renter.wait()
        except BaseException:
            await renter.kill()
            raise
        tenancy = Tenancy(folder / "owners")
        try:
            if self.reaped:
                await reap(provisioner, tenancy)
            return await renter.left_in_the_end(provisioner)
        finally:
            tenancy.release()


def _at(step: str, times: int = 1, *, then: bool = False) -> Callable[[Renter, PrivateSlurm], Awaitable[None]]:
    """Killed when it says this step for the so-manieth time; `then`: when Slurm has heard of it."""

    async def strike(renter: Renter, cluster: PrivateSlurm) -> None:
        for _ in range(times):
            await renter.says(f"step {step}")
        if then:
            await renter.queued()
        await renter.kill()

    return strike


async def _while_running(renter: Renter, cluster: PrivateSlurm) -> None:
    await renter.running()
    await renter.kill()


async def _with_its_warden(renter: Renter, cluster: PrivateSlurm) -> None:
    await renter.running()
    await renter.kill(warden=True)


async def _machine_lost(renter: Renter, cluster: PrivateSlurm) -> None:
    """Slurm's administrator ends the machine; the owner lives on, and says what it was told."""
    await renter.running()
    cluster.command("scancel", "--signal=KILL", "--full", *map(str, renter.jobs()))
    cluster.command("scancel", *map(str, renter.jobs()))
    said = await renter.says("error")
    if said.split()[1] not in ("Lost", "Unavailable"):
        raise AssertionError(said)
    await renter.says("closed")


async def until(true: Callable[[], bool], what: str) -> None:
    """Looks from outside: nobody tells."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(true):  # noqa: ASYNC110 see above
                await asyncio.sleep(LOOK_S / 4)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("killed before the launch is asked for", _at("launch")),
        Fault("killed while the launch is under way", _at("launch", then=True)),
        Fault("killed before our package is sent", _at("send")),
        Fault("killed while the machine is furnished", _at("call", 2)),
        Fault("killed before the machine is greeted", _at("call", 3)),
        Fault("killed before the program is submitted", _at("submit")),
        Fault("killed while the program runs", _while_running),
        Fault("killed while the machine is ended", _at("down"), seconds=1),
        Fault("killed together with its warden", _with_its_warden, reaped=True),
        Fault("the machine is lost while the program runs", _machine_lost),
    )
}
