"""Sandboxes of others by their own API, one after another, in a Python that has their package and nothing of ours.

usage: their_sandboxes.py inspect|swerex IMAGE

Each line of the input says how many; the answer is one line of JSON, the seconds that each took from the wish for a
sandbox until it was gone. One is made before the first line is read: what is imported and connected once counts for
none.
"""

import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

SOURCE = "print('hello')\n" * 100
GIVEN, TAKEN = "/tmp/main.py", "/tmp/x"  # noqa: S108  in the sandbox
PROGRAM = ["python3", "-c", f"open('{TAKEN}', 'w').write('y')"]
# What Inspect itself writes for a task that names no compose file; the image is ours.
COMPOSE = """
services:
  default:
    image: {image}
    x-local: true
    command: tail -f /dev/null
    init: true
    network_mode: none
    stop_grace_period: 1s
"""


async def inspect(image: str) -> Callable[[], Awaitable[str]]:
    from inspect_ai.util._sandbox.docker.docker import DockerSandboxEnvironment as Sandboxes

    with tempfile.NamedTemporaryFile("w", prefix="compose", suffix=".yaml", delete=False) as file:
        file.write(COMPOSE.format(image=image))
    await Sandboxes.task_init("others", file.name)

    async def one() -> str:
        made = await Sandboxes.sample_init("others", file.name, {})
        sandbox = made["default"]
        await sandbox.write_file(GIVEN, SOURCE)
        done = await sandbox.exec(PROGRAM)
        if not done.success:
            raise RuntimeError(done.stderr)
        answer = str(await sandbox.read_file(TAKEN))
        await Sandboxes.sample_cleanup("others", file.name, made, interrupted=False)
        return answer

    return one


async def swerex(image: str) -> Callable[[], Awaitable[str]]:
    from swerex.deployment.docker import DockerDeployment
    from swerex.runtime.abstract import Command, ReadFileRequest, WriteFileRequest

    quiet = logging.getLogger("blastdoor-others")
    quiet.disabled = True

    async def one() -> str:
        deployment = DockerDeployment(image=image, pull="never", logger=quiet)
        await deployment.start()
        runtime = deployment.runtime
        await runtime.write_file(WriteFileRequest(path=GIVEN, content=SOURCE))
        await runtime.execute(Command(command=PROGRAM, check=True))
        answer = str((await runtime.read_file(ReadFileRequest(path=TAKEN))).content)
        await deployment.stop()
        return answer

    return one


async def main(name: str, image: str) -> None:
    one = await {"inspect": inspect, "swerex": swerex}[name](image)

    async def timed() -> float:
        started = time.perf_counter()
        if (answer := await one()) != "y":
            raise RuntimeError(f"{name} gave {answer!r}")
        return time.perf_counter() - started

    await timed()
    for line in sys.stdin:
        taken = [await timed() for _ in range(int(line))]
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
