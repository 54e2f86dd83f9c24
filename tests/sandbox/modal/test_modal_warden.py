"""An owner that is killed, and the one who cleans up after it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from sandbox.config import ModalConfig
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import until

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.crash, pytest.mark.touching("modal")]


@contextlib.asynccontextmanager
async def owner(config: ModalConfig) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A process with a chamber that sleeps, and the pid of its warden, which is ended in the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sandbox.conformance.modal_owner", config.model_dump_json()),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    _, warden = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().split()
    try:
        yield process, int(warden)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(warden), signal.SIGKILL)


async def none_running(emulator: ModalEmulator) -> bool:
    return not await asyncio.to_thread(emulator.running)


async def test_a_killed_owners_sandboxes_are_ended(modal_emulator: ModalEmulator, config: ModalConfig) -> None:
    """At once, without anybody who reaps (T72)."""
    async with owner(config) as (process, _):
        assert len(modal_emulator.running()) == 1
        process.kill()
        await until(lambda: none_running(modal_emulator), 60)


async def test_one_that_came_after_its_owners_death(modal_emulator: ModalEmulator, config: ModalConfig) -> None:
    """The warden sweeps more than once: a create may still be under way when its owner is killed."""
    async with owner(config) as (process, _):
        tags = modal_emulator.running()[0]["tags"]
        process.kill()
        await until(lambda: none_running(modal_emulator), 60)
        late = await _made_late(modal_emulator, config, tags)
        await until(lambda: none_running(modal_emulator), 30)
        assert late in [one["sandbox_id"] for one in modal_emulator.sandboxes()]


async def _made_late(emulator: ModalEmulator, config: ModalConfig, tags: dict[str, str]) -> str:
    from tests.modal_emulator.bare import Bare

    bare = await Bare.connect(emulator.environment())
    app = await bare.app_named(config.app)
    return (await bare.create(app=app, tags=tags)).object_id
