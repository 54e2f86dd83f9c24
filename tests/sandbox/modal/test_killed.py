"""After a SIGKILL of an owner, before or after the effect of whichever call, nothing runs on and nobody else is hit."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable
from typing import Any

import psutil
import pytest

from sandbox import Job
from sandbox.config import ModalConfig
from tests.modal_emulator import ModalEmulator, When
from tests.modal_emulator.bare import until
from tests.sandbox.modal import doomed_owner
from tests.sandbox.modal.life import GPU_JOB, JOB, at_once, reap_as_another
from tests.started import WITH_MODAL, Started

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.crash, pytest.mark.touching("modal")]

OWNER = f"{doomed_owner.__name__}:main"
REACHED_S = 120.0

# Everything between the first thing that costs and the last: create, run, terminate.
CALLS = {
    "SandboxCreateV2": JOB,
    "TaskExecStart": JOB,
    "TaskExecStdinWrite": JOB,
    "TaskExecStdioRead": JOB,
    "SandboxTerminateV2": JOB,
    "SandboxWaitV2": JOB,
    "SandboxCreate": GPU_JOB,
    "SandboxGetTaskId": GPU_JOB,
    "TaskGetCommandRouterAccess": GPU_JOB,
    "SandboxTerminate": GPU_JOB,
    "SandboxWait": GPU_JOB,
}


class Owner:
    """A process of its own, with its warden."""

    def __init__(self, process: Started, warden: int) -> None:
        self._process = process
        self._warden = warden

    @classmethod
    async def start(cls, config: ModalConfig, job: Job) -> "Owner":
        words = (config.model_dump_json(), job.model_dump_json())
        process = await asyncio.to_thread(
            Started, *words, program=OWNER, warm=WITH_MODAL, stdout=subprocess.PIPE, stderr=2
        )
        return cls(process, int(await asyncio.wait_for(asyncio.to_thread(process.said.readline), REACHED_S)))

    async def kill(self) -> None:
        self._process.kill()
        ended = await asyncio.to_thread(self._process.wait)
        self._process.said.close()
        assert ended == -signal.SIGKILL, "the owner ended before it could be killed"

    async def kill_warden(self) -> None:
        """It is nobody's child by now: whoever adopts orphans buries it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._warden, signal.SIGKILL)
        while _lives(self._warden):  # noqa: ASYNC110 not our child: nobody tells us
            await asyncio.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.asynccontextmanager
async def killed(
    emulator: ModalEmulator, config: ModalConfig, rpc: str, when: When, with_warden: bool
) -> AsyncIterator[None]:
    """An owner is killed while this call waits at this point; then the call goes on, as a provider's would."""
    held = emulator.hold(rpc, when, app=config.app)
    owner = await Owner.start(config, CALLS[rpc])

    async def is_reached() -> bool:
        return emulator.reached(held, 0)

    await until(is_reached, REACHED_S)
    if with_warden:
        await owner.kill_warden()
    await owner.kill()
    emulator.release(held)
    try:
        yield
    finally:
        await owner.kill_warden()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("calls", "with_warden"), [(CALLS, False), (("SandboxCreateV2", "SandboxCreate", "SandboxTerminateV2"), True)]
)
async def test_somebody_ends_it(
    config: ModalConfig, modal_emulator: ModalEmulator, calls: Iterable[str], with_warden: bool, when: When
) -> None:
    """At once its warden does, even a create that takes effect when its owner is dead already (T72). With the warden
    dead too, a reap by another owner is enough.
    """

    async def one(rpc: str) -> str:
        own = config.model_copy(update={"app": f"{rpc}-{when}"})
        async with killed(modal_emulator, own, rpc, when, with_warden=with_warden):
            await made(modal_emulator, own)
            if with_warden:
                await reap_as_another(own)
            return f"{rpc} {when}" if await runs_on(modal_emulator, own, seconds=1 if with_warden else 90) else ""

    assert [rpc for rpc in await at_once(map(one, calls)) if rpc] == []
    assert modal_emulator.containers() == []


def bills(emulator: ModalEmulator, config: ModalConfig) -> list[dict[str, Any]]:
    return [bill for bill in emulator.sandboxes() if bill["app"] == config.app]


async def made(emulator: ModalEmulator, config: ModalConfig) -> None:
    """The held call was released and had its effect: from here on there is something to end."""

    async def is_there() -> bool:
        return bool(bills(emulator, config))

    await until(is_there, REACHED_S)


async def runs_on(emulator: ModalEmulator, config: ModalConfig, seconds: float) -> bool:
    """As the provider sees it, when so many seconds have passed at the latest."""

    async def is_over() -> bool:
        return all(bill["ended_at"] for bill in bills(emulator, config))

    try:
        await until(is_over, seconds)
    except TimeoutError:
        return True
    return False
