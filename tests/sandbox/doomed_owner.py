"""An owner that kills itself at a named step of making and running a chamber; run by test_docker_crash.py."""

import asyncio
import os
import signal
import sys
from typing import Any

from sandbox import Bundle, DockerConfig, Job
from sandbox.backends.docker.backend import DockerBackend

# Keeps PID 1's stdin open from inside, so that the end of the owner's side is never seen there.
HOSTILE = "exec 9<>/proc/1/fd/0; trap '' TERM HUP; while :; do sleep 0.1; done"


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
    async with await backend.open(Job(command=("sh", "-c", HOSTILE))) as chamber:
        asyncio.get_running_loop().call_later(1.0, die)
        await chamber.run(Bundle({}))


asyncio.run(own(sys.argv[1]))
