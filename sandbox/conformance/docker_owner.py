"""An owner that is made to be killed: opens a chamber that sleeps, says who it is, and waits."""

import asyncio
import sys

from sandbox.backends.docker.backend import DockerBackend
from sandbox.bundle import Bundle
from sandbox.config import DockerConfig
from sandbox.conformance import programs
from sandbox.conformance.check import SMALL, Ear


async def own(config: DockerConfig) -> None:
    backend = await DockerBackend.connect(config)
    ear = Ear()
    chamber = await backend.open(programs.SLEEP.job(limits=SMALL.model_copy(update={"wall": 300})))
    running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
    await ear.heard.wait()
    sys.stdout.write(f"{backend.owner} {backend.warden_pid}\n")
    sys.stdout.flush()
    await running


if __name__ == "__main__":
    asyncio.run(own(DockerConfig.model_validate_json(sys.argv[1])))
