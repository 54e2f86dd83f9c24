"""What the emulator does wrong on demand, as Modal's own SDK sees it."""

import asyncio

import docker
import modal
import pytest
from grpclib import Status
from modal.exception import AlreadyExistsError, AuthError, ResourceExhaustedError, UnimplementedError

from tests.modal_emulator import ModalEmulator, When
from tests.modal_emulator.bare import APP, Bare, until

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]


async def test_a_failure_before_the_effect(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """The SDK tries again, and there is one sandbox."""
    modal_emulator.fail("SandboxCreateV2", "before")
    await bare.create(name="one")
    assert len(modal_emulator.running()) == 1
    assert modal_emulator.calls().count("SandboxCreateV2") == 2


async def test_a_failure_after_the_effect(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """The sandbox runs, and the SDK's own retry is told that its name is taken."""
    modal_emulator.fail("SandboxCreateV2", "after")
    with pytest.raises(AlreadyExistsError):
        await bare.create(name="one")
    (running,) = modal_emulator.running()
    found = await modal.Sandbox.from_name.aio(APP, "one", client=bare.client)
    assert found.object_id == running["sandbox_id"]


async def test_a_provider_that_knows_retries(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Where keys are remembered, the retry gets the sandbox that the first try made."""
    modal_emulator.remember_keys()
    modal_emulator.fail("SandboxCreateV2", "after")
    sandbox = await bare.create(name="one")
    assert [found["sandbox_id"] for found in modal_emulator.running()] == [sandbox.object_id]


async def test_a_create_outlives_its_caller(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Who gives up on a create may have a sandbox all the same, later; its tags came with it."""
    held = modal_emulator.hold("SandboxCreateV2")
    create = asyncio.create_task(bare.create(tags={"owner": "gone"}))
    assert await asyncio.to_thread(modal_emulator.reached, held)
    create.cancel()
    with pytest.raises(asyncio.CancelledError):
        await create
    assert modal_emulator.running() == []
    modal_emulator.release(held)

    async def is_there() -> bool:
        return len(await bare.listed(owner="gone")) == 1

    await until(is_there)


@pytest.mark.parametrize(("when", "left"), [("before", 1), ("after", 0)])
async def test_a_call_that_never_answers(bare: Bare, modal_emulator: ModalEmulator, when: When, left: int) -> None:
    """A hanging terminate has no effect, or has it without saying so."""
    sandbox = await bare.create()
    hung = modal_emulator.hang("SandboxTerminateV2", when)
    end = asyncio.create_task(sandbox.terminate.aio())
    assert await asyncio.to_thread(modal_emulator.reached, hung)
    assert len(modal_emulator.running()) == left
    assert not end.done()
    end.cancel()


async def test_a_stream_that_breaks(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Cut off in the middle of the output, the SDK asks again from its offset and misses nothing."""
    modal_emulator.cut_at("TaskExecStdioRead", "after", times=3)
    sandbox = await bare.create()
    process = await sandbox.exec.aio("head", "-c", "3000000", "/dev/zero", text=False, timeout=60)
    assert await process.stdout.read.aio() == bytes(3_000_000)
    assert modal_emulator.calls().count("TaskExecStdioRead") >= 4


async def test_input_is_not_written_twice(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """A write whose answer was lost is sent again, and lands once."""
    modal_emulator.fail("TaskExecStdinWrite", "after")
    sandbox = await bare.create()
    process = await sandbox.exec.aio("cat", text=False, timeout=60)
    process.stdin.write(b"once\n")
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.stdout.read.aio() == b"once\n"


async def test_an_expired_token(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Every call of the control plane is refused."""
    modal_emulator.expire_token()
    with pytest.raises(AuthError):
        await bare.create()
    with pytest.raises(AuthError):
        await bare.listed()


async def test_a_quota(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """No room is an error of its own, and no sandbox."""
    modal_emulator.fail("SandboxCreateV2", status=Status.RESOURCE_EXHAUSTED, times=-1)
    with pytest.raises(ResourceExhaustedError):
        await bare.create()
    assert modal_emulator.sandboxes() == []


async def test_a_half_dead_worker(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """The command is over, and nobody is told, until the worker recovers; terminate works all the while."""
    sandbox = await bare.create()
    process = await sandbox.exec.aio("echo", "hello", timeout=60)
    modal_emulator.silence()
    waiting = asyncio.create_task(process.wait.aio())
    reading = asyncio.create_task(process.stdout.read.aio())
    await asyncio.wait([waiting, reading], timeout=1)
    assert not waiting.done()
    assert not reading.done()
    modal_emulator.heal()
    assert (await waiting, await reading) == (0, "hello\n")
    modal_emulator.silence()
    await sandbox.terminate.aio()
    assert modal_emulator.running() == []


async def test_cut_off_and_back(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Nobody answers while it is cut; on the same port, everything is there again."""
    sandbox = await bare.create()
    modal_emulator.cut()
    listing = asyncio.create_task(bare.listed())
    await asyncio.wait([listing], timeout=0.5)
    assert not listing.done()
    modal_emulator.heal()
    assert await listing == {sandbox.object_id}


async def test_a_call_that_it_has_not(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """It is refused and remembered, so that the fixture fails the test."""
    sandbox = await bare.create()
    with pytest.raises(UnimplementedError):
        await sandbox.tunnels.aio()
    assert modal_emulator.blemishes() == {"unimplemented": ["SandboxGetTunnelsV2"]}
    modal_emulator.forget()


async def test_it_takes_its_containers_along(modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator whose test is gone ends, and leaves no container."""
    own = ModalEmulator()
    for name, value in own.environment().items():
        monkeypatch.setenv(name, value)
    await (await Bare.connect(own.environment())).create()
    container = own.sandboxes()[0]["container"]
    engine = docker.from_env()
    assert engine.containers.get(container).status == "running"
    own.close()
    with pytest.raises(docker.errors.NotFound):
        engine.containers.get(container)
    engine.close()
