"""The emulator by itself, driven by Modal's own SDK: what other tests take for granted of it."""

import asyncio

import docker
import modal
import pytest
from modal.exception import AlreadyExistsError, NotFoundError, SandboxTimeoutError, UnimplementedError

from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import APP, Bare

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]


async def test_a_command_speaks_and_ends(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Input, both outputs and the exit code pass through the SDK unchanged, through cuts and lost answers, too."""
    modal_emulator.cut_at("TaskExecStdioRead", "after", times=3)
    modal_emulator.fail("TaskExecStdinWrite", "after")
    sandbox = await bare.create()
    process = await sandbox.exec.aio("sh", "-c", "cat; echo wrong >&2; exit 3", text=False, timeout=30)
    process.stdin.write(b"\x00\xff" * 1_000_000)
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.stdout.read.aio() == b"\x00\xff" * 1_000_000
    assert await process.stderr.read.aio() == b"wrong\n"
    assert await process.wait.aio() == 3


async def test_names_tags_and_lists(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """A name is one living sandbox's own; lists know only the living, by tag and beyond one page."""
    first = await bare.create(name="one", tags={"owner": "a"})
    with pytest.raises(AlreadyExistsError):
        await bare.create(name="one")
    others = {(await bare.create(tags={"owner": "b"})).object_id for _ in range(11)}
    assert await bare.listed(owner="a") == {first.object_id}
    assert await bare.listed() == others | {first.object_id}
    found = await modal.Sandbox.from_name.aio(APP, "one", client=bare.client)
    assert (found.object_id, await found.get_tags.aio()) == (first.object_id, {"owner": "a"})
    await found.terminate.aio()
    assert await bare.listed() == others
    with pytest.raises(NotFoundError):
        await modal.Sandbox.from_name.aio(APP, "one", client=bare.client)
    await bare.create(name="one")
    assert len(modal_emulator.running()) == 12


async def test_how_a_sandbox_ends(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """After its lifetime, whoever does or does not ask; as a whole where a command runs out of memory, as under gVisor,
    and then the command's end is never told. All of it is on the bill.
    """
    late = await bare.create(timeout=1)
    full = await bare.create(cpu=(0.5, 1.0), memory=(64, 64), block_network=False)
    process = await full.exec.aio("python3", "-c", "x = bytearray(300 << 20)", timeout=60)
    with pytest.raises(NotFoundError):
        await process.wait.aio()
    await full.wait.aio(raise_on_termination=False)
    with pytest.raises(SandboxTimeoutError):
        await late.wait.aio()
    assert (full.returncode, late.returncode) == (137, 124)
    bills = modal_emulator.sandboxes()
    assert [bill["status"].removeprefix("GENERIC_STATUS_") for bill in bills] == ["KERNEL_OOM_KILL", "TIMEOUT"]
    asked = [(bill["cpu"], bill["memory_mib"], bill["timeout"], bill["network_blocked"]) for bill in bills]
    assert asked == [([0.5, 1.0], [64, 64], 120, False), ([0.0, 0.0], [0, 0], 1, True)]
    assert all(bill["ended_at"] - bill["created_at"] == pytest.approx(bill["seconds"]) for bill in bills)


async def test_a_call_that_it_has_not(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """It is refused and remembered, so that the fixture fails the test."""
    sandbox = await bare.create()
    with pytest.raises(UnimplementedError):
        await sandbox.tunnels.aio()
    assert modal_emulator.blemishes() == {"unimplemented": ["SandboxGetTunnelsV2"]}
    modal_emulator.forget()


async def test_it_takes_its_containers_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator whose test is gone ends, and leaves no container."""
    own = ModalEmulator()
    for name, value in own.environment().items():
        monkeypatch.setenv(name, value)
    await (await Bare.connect(own.environment())).create()
    container = own.sandboxes()[0]["container"]
    engine = docker.from_env()
    assert engine.containers.get(container).status == "running"
    await asyncio.to_thread(own.close)
    with pytest.raises(docker.errors.NotFound):
        engine.containers.get(container)
    engine.close()
