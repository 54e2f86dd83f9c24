"""Whatever Modal does wrong, at whichever call: it takes a bounded time, is one of our errors, and leaves nothing."""

import asyncio
from typing import Literal

import pytest

from sandbox import Ending, Job
from sandbox.backends import modal_engine
from sandbox.config import ModalConfig
from sandbox.errors import SandboxError
from sandbox.link import Deadlines
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare
from tests.sandbox.modal.life import (
    ALWAYS,
    GPU_JOB,
    JOB,
    WITH_A_GPU,
    WITHOUT_A_GPU,
    dismiss,
    leave_an_orphan,
    live,
    lose_the_reply,
    nothing_runs,
    reap_as_another,
)

pytestmark = [pytest.mark.modal, pytest.mark.docker]

When = Literal["before", "after"]
AFTER_A_LOST_REPLY = (
    "SandboxGetCommandRouterAccess",
    "SandboxGetFromName",
    "SandboxGetFromNameV2",
    "SandboxGetTaskIdV2",
)
BOUND_S = 150.0  # generous: the longest chain of our own deadlines, on a machine that does much else


@pytest.fixture
def hasty(config: ModalConfig, monkeypatch: pytest.MonkeyPatch) -> ModalConfig:
    """Our own deadlines, shorter: what hangs is given up sooner."""
    for name, seconds in (("CONNECT_S", 6.0), ("CALL_S", 4.0), ("END_TRY_S", 4.0)):
        monkeypatch.setattr(modal_engine, name, seconds)
    return config.model_copy(update={"deadlines": Deadlines(provision=8.0, upload=6.0, collect=6.0)})


def inject(emulator: ModalEmulator, rpc: str, when: When, kind: str) -> int:
    """Before the effect it goes wrong every time, as with a provider that is away; a reply is lost once."""
    times = -1 if when == "before" else 1
    match kind:
        case "error":
            return emulator.fail(rpc, when, times=times)
        case "hang":
            return emulator.hang(rpc, when, times=times)
    return emulator.cut_at(rpc, when, times=times)


@pytest.mark.parametrize("job", [JOB, GPU_JOB], ids=["usual", "gpu"])
async def test_every_rpc_is_among_these(
    config: ModalConfig, bare: Bare, modal_emulator: ModalEmulator, job: Job
) -> None:
    """The lists that the other tests go through hold every call that our backend makes in such a life."""
    await leave_an_orphan(config, bare, job)
    lose_the_reply(modal_emulator, job)
    life = await live(config, job)
    assert life.outcome, life.failure
    assert life.outcome.ending is Ending.COMPLETED
    assert life.outcome.outputs == {"x": b"hello"}
    assert set(modal_emulator.calls()) == {*ALWAYS, *(WITH_A_GPU if job.limits.gpu else WITHOUT_A_GPU)}


@pytest.mark.parametrize("kind", ["error", "hang", "cut"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("rpc", [*ALWAYS, *WITHOUT_A_GPU, *WITH_A_GPU])
async def test_nothing_is_left(
    hasty: ModalConfig, bare: Bare, modal_emulator: ModalEmulator, rpc: str, when: When, kind: str
) -> None:
    """A trial comes through or fails as ours; what it says it cost covers what Modal would charge; nothing runs on."""
    job = GPU_JOB if rpc in WITH_A_GPU else JOB
    if "TagsGet" in rpc:
        await leave_an_orphan(hasty, bare, job)
    if rpc in AFTER_A_LOST_REPLY:
        lose_the_reply(modal_emulator, job)
    fault = inject(modal_emulator, rpc, when, kind)
    async with asyncio.timeout(BOUND_S):
        life = await live(hasty, job)
    assert modal_emulator.reached(fault, 0), "the fault did not strike"
    assert life.outcome or isinstance(life.failure, SandboxError)
    modal_emulator.heal()
    await dismiss(life)
    await reap_as_another(hasty)
    assert await nothing_runs(modal_emulator), modal_emulator.running()
    charged = sum(bill["seconds"] for bill in modal_emulator.sandboxes() if bill["name"] != "orphan")
    if not life.unended:
        assert charged * hasty.rates.per_second(job.limits) <= life.usd * 1.01
