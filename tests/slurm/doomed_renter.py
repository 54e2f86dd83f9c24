"""An owner that rents one machine for one program and says each step it takes, to be killed at any of them.

`doomed_renter.py INFRA FOLDER COMMAND`: one line for each call to SkyPilot, before it is made, then the outcome.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sandbox import Bundle, Job, Limits, SkyPilotConfig
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.sdk import SkyPilot
from sandbox.errors import SandboxError

STEPS = ("launch", "submit", "down")


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def told(step: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """SkyPilot's, with a word before it."""

    async def act(*words: Any) -> Any:
        say(f"step {step}")
        return await method(*words)

    return act


async def main(infra: str, folder: Path, command: str) -> None:
    config = SkyPilotConfig(infra=infra, owners_folder=folder / "owners", inputs_folder=folder / "inputs")
    for step in STEPS:
        setattr(SkyPilot, step, told(step, getattr(SkyPilot, step)))
    backend = await SkyPilotBackend.connect(config)
    say(f"owner {backend.owner}")
    try:
        limits = Limits(wall=300, memory="64MiB", work_bytes="16MiB")
        async with await backend.open(Job(command=("sh", "-c", command), limits=limits)) as chamber:
            say("open")
            outcome = await chamber.run(Bundle({}))
        say(f"outcome {outcome.ending}")
    except SandboxError as error:
        say(f"error {type(error).__name__} {error}")
    finally:
        await backend.close()
    say("closed")


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
