"""An owner that is killed on a real cluster, from outside, and then looked at until nothing of it is left."""

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from own_processes import Process, processes_saying
from private_slurm import PrivateSlurm
from sandbox.backends.skypilot.end import found
from sandbox.backends.skypilot.names import mark_of
from sandbox.backends.skypilot.provisioner import Provisioner

OWNER = Path(__file__).with_name("doomed_renter.py")
REPOSITORY = OWNER.parents[2]
PATIENCE_S = 900.0  # a busy machine is slow, and that is no fault
LOOK_S = 1.0


class Renter:
    """The doomed owner, seen from outside. Its program carries a number that nothing else on the machine says."""

    def __init__(self, cluster: PrivateSlurm, folder: Path) -> None:
        self._cluster = cluster
        self._process: asyncio.subprocess.Process | None = None
        self._folder = folder
        self.sign = f"250.{uuid.uuid4().int % 10**12:012d}"
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

    async def kill(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

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


Strike = Callable[[Renter], Awaitable[None]]


async def left_after(strike: Strike, cluster: PrivateSlurm, provisioner: Provisioner, folder: Path) -> list[str]:
    """What is left when everybody who cleans up has had their time."""
    renter = Renter(cluster, folder)
    try:
        await renter.start()
        await strike(renter)
    finally:
        await renter.kill()
    return await renter.left_in_the_end(provisioner)


async def while_the_launch_is_under_way(renter: Renter) -> None:
    """When Slurm has heard of it."""
    await renter.says("step launch")
    await until(lambda: bool(renter.jobs()), "Slurm has a job for it")


async def while_the_program_runs(renter: Renter) -> None:
    await until(lambda: bool(renter.programs()), "its program runs")


async def until(true: Callable[[], bool], what: str) -> None:
    """Looks from outside: nobody tells."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(true):  # noqa: ASYNC110 see above
                await asyncio.sleep(LOOK_S / 4)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None
