"""The emulator by itself, driven by Modal's own SDK: what it gives is what Modal's clients expect."""

from pathlib import Path

import modal
import pytest
from modal.exception import AlreadyExistsError, ImageBuildError, NotFoundError, SandboxTimeoutError

from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import APP, Bare, until
from tests.sandbox.make_wheel import make_wheel

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]


async def said(sandbox: modal.Sandbox, *words: str) -> str:
    process = await sandbox.exec.aio(*words, timeout=60)
    answer: str = await process.stdout.read.aio()
    return answer.strip()


async def test_a_command_speaks_and_ends(bare: Bare) -> None:
    """Input, both outputs and the exit code of a command pass through the SDK unchanged."""
    sandbox = await bare.create()
    process = await sandbox.exec.aio("sh", "-c", "cat; echo wrong >&2; exit 3", text=False, timeout=30)
    process.stdin.write(b"\x00\xff" * 1_000_000)
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.stdout.read.aio() == b"\x00\xff" * 1_000_000
    assert await process.stderr.read.aio() == b"wrong\n"
    assert await process.wait.aio() == 3
    assert await process.poll.aio() == 3


async def test_input_goes_in_while_output_comes_out(bare: Bare) -> None:
    """A command that answers each line can be talked with."""
    sandbox = await bare.create()
    process = await sandbox.exec.aio("sh", "-c", "while read x; do echo got $x; done", text=False, timeout=30)
    heard = process.stdout.__aiter__()
    for word in (b"a", b"b", b"c"):
        process.stdin.write(word + b"\n")
        await process.stdin.drain.aio()
        assert await heard.__anext__() == b"got " + word + b"\n"
    assert await process.poll.aio() is None
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.wait.aio() == 0


async def test_names_tags_and_lists(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """A name is one living sandbox's own; lists know only the living, by tag and beyond one page."""
    first = await bare.create(name="one", tags={"owner": "a"})
    with pytest.raises(AlreadyExistsError):
        await bare.create(name="one")
    others = {(await bare.create(tags={"owner": "b"})).object_id for _ in range(11)}
    assert await bare.listed(owner="a") == {first.object_id}
    assert await bare.listed(owner="b") == others
    assert await bare.listed() == others | {first.object_id}
    found = await modal.Sandbox.from_name.aio(APP, "one", client=bare.client)
    assert found.object_id == first.object_id
    assert await found.get_tags.aio() == {"owner": "a"}
    await found.set_tags.aio({"owner": "c"})
    assert await bare.listed(owner="c") == {first.object_id}
    await found.terminate.aio()
    assert await bare.listed() == others
    with pytest.raises(NotFoundError):
        await modal.Sandbox.from_name.aio(APP, "one", client=bare.client)
    again = await bare.create(name="one")
    assert again.object_id != first.object_id
    assert len(modal_emulator.running()) == 12


async def test_as_permissive_as_modal(bare: Bare) -> None:
    """Root on a writable system: nothing that a client wants to be sure of is given by the emulator."""
    sandbox = await bare.create()
    assert await said(sandbox, "sh", "-c", "id -u; touch /usr/bin/mine && echo written") == "0\nwritten"
    assert await said(sandbox, "sh", "-c", "grep -c : /proc/net/dev") == "1"


async def test_what_was_asked_for_is_on_the_bill(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """Requests, limits, network and times are recorded, so that bookings can be held against them."""
    sandbox = await bare.create(cpu=(0.5, 1.0), memory=(128, 256), name="billed", timeout=77)
    await bare.create(block_network=False)
    other, bill = modal_emulator.sandboxes()
    assert (bill["cpu"], bill["memory_mib"], bill["gpu"], bill["timeout"]) == ([0.5, 1.0], [128, 256], "", 77)
    assert (bill["network_blocked"], other["network_blocked"]) == (True, False)
    assert bill["ended_at"] is None
    await sandbox.terminate.aio()
    bill = modal_emulator.sandboxes()[1]
    assert bill["status"] == "GENERIC_STATUS_TERMINATED"
    assert bill["ended_at"] - bill["created_at"] == pytest.approx(bill["seconds"])


async def test_a_pretended_gpu_goes_the_older_way(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """With a GPU the SDK uses other RPCs; the life cycle is the same, and the request is on the bill."""
    sandbox = await bare.create(gpu="A10", name="fast", tags={"owner": "g"}, env={"WORD": "here"})
    assert await said(sandbox, "sh", "-c", "echo $WORD") == "here"
    assert await bare.listed(owner="g") == {sandbox.object_id}
    assert (await modal.Sandbox.from_name.aio(APP, "fast", client=bare.client)).object_id == sandbox.object_id
    with pytest.raises(AlreadyExistsError):
        await bare.create(name="fast")
    await sandbox.terminate.aio()
    assert await sandbox.poll.aio() == 137
    (bill,) = modal_emulator.sandboxes()
    assert (bill["gpu"], bill["gpus"], bill["is_v2"]) == ("A10", 1, False)
    assert {"SandboxCreate", "SandboxGetTaskId", "TaskGetCommandRouterAccess"} <= set(modal_emulator.calls())
    assert "SandboxTerminate" in modal_emulator.calls()


async def test_the_lifetime_ends_it(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """A sandbox is over after its timeout, whoever does or does not ask, and what ran in it is gone."""
    sandbox = await bare.create(timeout=1)
    with pytest.raises(SandboxTimeoutError):
        await sandbox.wait.aio()
    assert sandbox.returncode == 124
    assert await bare.listed() == set()
    assert modal_emulator.sandboxes()[0]["status"] == "GENERIC_STATUS_TIMEOUT"


async def test_an_idle_sandbox_is_ended(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """The idle time counts only while no command runs."""
    sandbox = await bare.create(idle_timeout=8)
    assert await said(sandbox, "sh", "-c", "sleep 9; echo awake") == "awake"
    await sandbox.wait.aio()
    assert modal_emulator.sandboxes()[0]["status"] == "GENERIC_STATUS_IDLE_TIMEOUT"


async def test_a_command_that_takes_too_long(bare: Bare) -> None:
    """Its timeout ends the command, not the sandbox; the SDK says -1."""
    sandbox = await bare.create()
    process = await sandbox.exec.aio("sh", "-c", "touch /tmp/began && exec tail -f /dev/null", timeout=8)
    names = ("sh", "-c", "ls /tmp; cat /proc/[0-9]*/comm")
    assert await process.wait.aio() == -1
    assert "began" in await said(sandbox, *names)

    async def is_gone() -> bool:
        return "tail" not in await said(sandbox, *names)

    await until(is_gone)
    assert await sandbox.poll.aio() is None


async def test_out_of_memory_ends_the_whole_sandbox(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """As under gVisor, not only the process that asked for too much: the command's end is never told."""
    sandbox = await bare.create(memory=(64, 64))
    process = await sandbox.exec.aio("python3", "-c", "x = bytearray(300 << 20)", timeout=60)
    with pytest.raises(NotFoundError):
        await process.wait.aio()
    await sandbox.wait.aio(raise_on_termination=False)
    assert modal_emulator.sandboxes()[0]["status"] == "GENERIC_STATUS_KERNEL_OOM_KILL"
    assert sandbox.returncode == 137


async def test_the_first_command_ends_it(bare: Bare) -> None:
    """A sandbox with a command of its own lives as long as that."""
    sandbox = await bare.create("sh", "-c", "exit 5")
    await sandbox.wait.aio()
    assert sandbox.returncode == 5


async def test_images_are_built_in_layers(bare: Bare, tmp_path: Path) -> None:
    """Dockerfile lines run, local files arrive, the same definition is the same image, and an id finds it again."""
    note = tmp_path / "note.txt"
    note.write_text("hello")
    image = bare.image.run_commands("echo one > /one").add_local_file(note, "/two", copy=True).env({"THREE": "3"})
    built = await image.build.aio(bare.app)
    again = await bare.image.run_commands("echo one > /one").build.aio(bare.app)
    assert again.object_id != built.object_id
    sandbox = await bare.create(image=modal.Image.from_id(built.object_id, client=bare.client))
    assert await said(sandbox, "sh", "-c", "cat /one /two; echo $THREE") == "one\nhello3"
    loose = await bare.create(image=bare.image.add_local_file(note, "/loose"))
    assert await said(loose, "cat", "/loose") == "hello"


async def test_a_package_is_installed(bare: Bare, modal_emulator: ModalEmulator, tmp_path: Path) -> None:
    """pip in a build finds what the test offers, and nothing else: there is no network."""
    modal_emulator.offer(make_wheel(tmp_path, "tiny"))
    image = bare.image.pip_install("tiny==1.0", extra_options="--only-binary=:all:")
    assert await said(await bare.create(image=image), "python", "-c", "import tiny; print(tiny.NAME)") == "tiny"
    with pytest.raises(ImageBuildError):
        await bare.image.pip_install("nowhere==1.0").build.aio(bare.app)


async def test_an_image_that_can_not_be_built(bare: Bare) -> None:
    """A failing line fails the build with what it said."""
    with pytest.raises(ImageBuildError, match="echo no such thing; exit 4"):
        await bare.image.run_commands("echo no such thing; exit 4").build.aio(bare.app)
