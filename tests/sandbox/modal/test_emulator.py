"""The emulator by itself, driven by Modal's own SDK."""

from collections.abc import AsyncIterator
from typing import Any

import modal
import pytest
import pytest_asyncio
from modal.exception import AlreadyExistsError

from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.modal, pytest.mark.docker]


class Bench:
    """A client and an app, and sandboxes made with little ado."""

    def __init__(self, client: modal.Client, app: modal.App) -> None:
        self.client = client
        self.app = app
        self.image = modal.Image.from_registry("python:3.11-slim-bookworm")

    async def create(self, *words: str, **wishes: Any) -> modal.Sandbox:
        settled: dict[str, Any] = {"image": self.image, "timeout": 120, "block_network": True} | wishes
        return await modal.Sandbox.create.aio(*words, app=self.app, client=self.client, **settled)

    async def listed(self, **tags: str) -> set[str]:
        found = modal.Sandbox.list.aio(app_id=self.app.app_id, tags=tags, client=self.client)
        return {sandbox.object_id async for sandbox in found}


@pytest_asyncio.fixture
async def bench(modal_emulator: ModalEmulator) -> AsyncIterator[Bench]:
    where = modal_emulator.environment()
    client = await modal.Client.from_credentials.aio(where["MODAL_TOKEN_ID"], where["MODAL_TOKEN_SECRET"])
    app = await modal.App.lookup.aio("emulated", client=client, create_if_missing=True)
    yield Bench(client, app)


async def test_a_command_speaks_and_ends(bench: Bench) -> None:
    """Input, both outputs and the exit code of a command pass through the SDK unchanged."""
    sandbox = await bench.create()
    process = await sandbox.exec.aio("sh", "-c", "cat; echo wrong >&2; exit 3", text=False, timeout=30)
    process.stdin.write(b"\x00\xff" * 100_000)
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.stdout.read.aio() == b"\x00\xff" * 100_000
    assert await process.stderr.read.aio() == b"wrong\n"
    assert await process.wait.aio() == 3
    await sandbox.terminate.aio()


async def test_names_tags_and_lists(bench: Bench, modal_emulator: ModalEmulator) -> None:
    """A name is one living sandbox's own; lists know only the living, by tag and beyond one page."""
    first = await bench.create(name="one", tags={"owner": "a"})
    with pytest.raises(AlreadyExistsError):
        await bench.create(name="one")
    others = {(await bench.create(tags={"owner": "b"})).object_id for _ in range(11)}
    assert await bench.listed(owner="a") == {first.object_id}
    assert await bench.listed(owner="b") == others
    assert await bench.listed() == others | {first.object_id}
    found = await modal.Sandbox.from_name.aio("emulated", "one", client=bench.client)
    assert found.object_id == first.object_id
    assert await found.get_tags.aio() == {"owner": "a"}
    await found.terminate.aio()
    assert await bench.listed() == others
    again = await bench.create(name="one")
    assert again.object_id != first.object_id
    assert len(modal_emulator.running()) == 12
