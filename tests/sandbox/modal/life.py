"""One whole life of an owner at Modal, with everything that our backend may have to ask for."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

import psutil
from modal._environments import ENVIRONMENT_CACHE

from sandbox import Bundle, Job, Limits, Outcome
from sandbox.backends.modal.backend import ModalBackend
from sandbox.backends.modal.engine import ModalEngine
from sandbox.backends.modal.marks import reap, tags_of
from sandbox.config import ModalConfig
from sandbox.errors import SandboxError
from sandbox.job import Gpu
from sandbox.tenancy import Tenancy
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare

LIMITS = Limits(wall=20, grace=1, memory=128 * 1024**2)
JOB = Job(command=("sh", "-c", "cat main.txt > /work/out/x"), limits=LIMITS)
Connect = Callable[[ModalConfig], Awaitable[ModalBackend]]
GPU_JOB = JOB.model_copy(update={"limits": LIMITS.model_copy(update={"gpu": Gpu(kind="A10")})})
AT_ONCE = 10
BUNDLE = Bundle({"main.txt": b"hello"})

# Every call of such a life, held against what it calls (test_every_rpc_is_among_these): none can be forgotten.
OF_NO_APP = (
    "AuthTokenGet",
    "ClientHello",
    "EnvironmentGetOrCreate",
)
ALWAYS = (
    "AppGetOrCreate",
    "ImageGetOrCreate",
    "SandboxGetFromNameV2",
    "SandboxListV2",
    "TaskExecStart",
    "TaskExecStdinWrite",
    "TaskExecStdioRead",
)
WITHOUT_A_GPU = (
    "SandboxCreateV2",
    "SandboxGetCommandRouterAccess",
    "SandboxGetTaskIdV2",
    "SandboxTagsGetV2",
    "SandboxTerminateV2",
    "SandboxWaitV2",
)
WITH_A_GPU = (
    "SandboxCreate",
    "SandboxGetFromName",
    "SandboxGetTaskId",
    "SandboxTagsGet",
    "SandboxTerminate",
    "SandboxWait",
    "TaskGetCommandRouterAccess",
)


@dataclass
class Life:
    """What became of it: an outcome, or the provider's failure."""

    outcome: Outcome | None = None
    failure: SandboxError | None = None
    usd: float = 0.0
    unended: bool = False
    warden: int | None = None


async def leave_an_orphan(config: ModalConfig, bare: Bare, job: Job) -> None:
    """A sandbox of an owner who is gone: whoever connects next has to find and end it."""
    gone = Tenancy(config.owners_folder)
    tags = tags_of(gone.mark(600), "orphan")
    gone.release()
    gpu = str(job.limits.gpu) if job.limits.gpu else None
    app = await bare.app_named(config.app)
    await bare.create(app=app, name="orphan", tags=tags, gpu=gpu)


async def reap_as_another(config: ModalConfig) -> list[str]:
    """What `blastdoor reap` does, without a backend around it."""
    engine = await ModalEngine.connect(config.app, config.environment)
    tenancy = Tenancy(config.owners_folder)
    try:
        return (await reap(engine, tenancy))[0]
    finally:
        tenancy.release()
        await engine.close()


async def live(config: ModalConfig, job: Job) -> Life:
    """Connect, one trial, close. Only our own errors may come of it, whatever the provider does."""
    ENVIRONMENT_CACHE.clear()  # the SDK asks once in a process, and each life is to be a whole one
    life = Life()
    try:
        backend = await ModalBackend.connect(config)
    except SandboxError as failure:
        return Life(failure=failure)
    try:
        chamber = await backend.open(job)
        try:
            life.outcome = await chamber.run(BUNDLE)
        finally:
            await chamber.kill()
            life.usd, life.unended = chamber.bill.usd, not chamber.bill.final
    except SandboxError as failure:
        life.failure = failure
        life.usd = life.usd or failure.usd
        life.unended = life.unended or failure.unended
    finally:
        life.warden = backend.warden_pid
        await backend.close()
    return life


async def dismiss(warden: int | None) -> None:
    """A warden that watches on for creates under way is ended here: it must not meddle with the next test's faults."""
    while warden and psutil.pid_exists(warden):
        with contextlib.suppress(ProcessLookupError):
            os.kill(warden, signal.SIGKILL)
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)  # its pipes are closed by this loop, which must not be gone before


def lose_the_reply(emulator: ModalEmulator, app: str, job: Job) -> None:
    """Of the first create: then the sandbox has to be found by its name."""
    emulator.fail("SandboxCreate" if job.limits.gpu else "SandboxCreateV2", "after", app=app)


async def at_once(lives: Iterable[Coroutine[Any, Any, str]]) -> list[str]:
    """A few at a time: the machine is small."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(life: Coroutine[Any, Any, str]) -> str:
        async with gate:
            return await life

    return list(await asyncio.gather(*map(one, lives)))
