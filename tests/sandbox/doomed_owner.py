"""An owner that kills itself at a named step of making and running a chamber; run by test_docker_crash.py."""

import asyncio
import os
import signal
import sys
from typing import Any

from sandbox import Bundle, DockerConfig, Job
from sandbox.backends.docker import backend as docker_backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.conformance.check import Ear

# Keeps PID 1's stdin open from inside, so that the end of the owner's side is never seen there.
HOSTILE = "exec 9<>/proc/1/fd/3 && echo deaf >&2; trap '' TERM HUP; while :; do sleep 0.1; done"
# Of a chamber whose owner and warden are both killed while it runs.
LIFE_S = 6


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def own(step: str) -> None:
    backend = await DockerBackend.connect(DockerConfig())
    sys.stdout.write(f"{backend.owner}\n")
    sys.stdout.flush()
    engine: Any = backend.engine
    if step in ("create", "inspect", "attach", "start"):
        original = getattr(engine, step)

        async def then_die(*args: Any) -> Any:
            await original(*args)
            die()

        setattr(engine, step, then_die)
    ear = Ear()
    if step == "forgotten":
        vars(docker_backend)["longest_life"] = lambda *_: LIFE_S
    async with await backend.open(Job(command=("sh", "-c", HOSTILE))) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
        await ear.hears()
        if step == "forgotten":
            os.kill(backend.warden_pid or 0, signal.SIGKILL)
        die()
        await running


asyncio.run(own(sys.argv[1]))
