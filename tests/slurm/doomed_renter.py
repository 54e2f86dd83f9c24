"""An owner that rents one machine for one program and says each step it takes, to be killed at any of them.

`doomed_renter.py INFRA FOLDER COMMAND`: one line for each call to SkyPilot, before it is made, then the outcome.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sandbox import Bundle, Job, Limits, SkyPilotConfig
from sandbox.backends.skypilot import backend as backends
from sandbox.errors import SandboxError

STEPS = ("launch", "send", "call", "submit", "down")


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


class Teller:
    """SkyPilot, with a word before each step."""

    def __init__(self, provisioner: Any) -> None:
        self._provisioner = provisioner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._provisioner, name)
        if name not in STEPS:
            return method

        async def told(*words: Any) -> Any:
            say(f"step {name}")
            return await method(*words)

        return told


async def main(infra: str, folder: Path, command: str) -> None:
    config = SkyPilotConfig(infra=infra, owners_folder=folder / "owners", inputs_folder=folder / "inputs")
    teller = Teller(backends.installed())
    with patch.object(backends, "installed", lambda: teller):
        backend = await backends.SkyPilotBackend.connect(config)
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
