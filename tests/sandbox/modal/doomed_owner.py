"""An owner that lives one whole life at Modal and is killed somewhere in it; run by test_killed.py."""

import asyncio
import sys

from sandbox import Bundle, Job
from sandbox.backends.modal.backend import ModalBackend
from sandbox.config import ModalConfig


async def own(config: ModalConfig, job: Job) -> None:
    backend = await ModalBackend.connect(config)
    sys.stdout.write(f"{backend.warden_pid}\n")
    sys.stdout.flush()
    async with await backend.open(job) as chamber:
        await chamber.run(Bundle({"main.txt": b"hello"}))
    await backend.close()


def main() -> None:
    """Words: its settings and its job, as JSON."""
    asyncio.run(own(ModalConfig.model_validate_json(sys.argv[1]), Job.model_validate_json(sys.argv[2])))
