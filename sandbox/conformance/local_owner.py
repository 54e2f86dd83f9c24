"""An owner that is made to be killed: opens a chamber that sleeps, says who it is, and waits."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable

from pydantic import TypeAdapter

from sandbox.bundle import Bundle
from sandbox.config import DockerConfig, RuncConfig
from sandbox.conformance import programs
from sandbox.conformance.check import SMALL, Ear
from sandbox.environment import child_environment

LocalConfig = DockerConfig | RuncConfig


async def own(config: LocalConfig) -> None:
    backend = await config.connect()
    ear = Ear()
    chamber = await backend.open(programs.SLEEP.job(limits=SMALL.model_copy(update={"wall": 300})))
    running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
    await ear.heard.wait()
    sys.stdout.write(f"{backend.owner} {backend.warden_pid}\n")
    sys.stdout.flush()
    await running


async def killed_owner(config: LocalConfig, needs: Iterable[str]) -> str:
    """The name of an owner in a process of its own with an open chamber: its warden is ended first, then it."""
    owner = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "sandbox.conformance.local_owner",
        config.model_dump_json(),
        env=child_environment(needs),
        stdout=asyncio.subprocess.PIPE,
    )
    if owner.stdout is None:
        raise RuntimeError("the owner has no stdout")
    name, warden = (await asyncio.wait_for(owner.stdout.readline(), 60)).decode().split()
    os.kill(int(warden), signal.SIGKILL)
    owner.kill()
    await owner.wait()
    return name


if __name__ == "__main__":
    asyncio.run(own(TypeAdapter[LocalConfig](LocalConfig).validate_json(sys.argv[1])))
