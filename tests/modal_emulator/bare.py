"""Modal's SDK as it comes: for tests of the emulator itself, and as the measure of what our backend adds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import modal

BASE = "python:3.11-slim-bookworm"
APP = "emulated"


class Bare:
    """A client and an app, and sandboxes made with little ado."""

    def __init__(self, client: modal.Client, app: modal.App) -> None:
        self.client = client
        self.app = app
        self.image = modal.Image.from_registry(BASE)

    @classmethod
    async def connect(cls, environment: dict[str, str]) -> "Bare":
        """The process's own environment must say where the server is: the SDK looks nowhere else."""
        client = await modal.Client.from_credentials.aio(
            environment["MODAL_TOKEN_ID"], environment["MODAL_TOKEN_SECRET"]
        )
        return cls(client, await modal.App.lookup.aio(APP, client=client, create_if_missing=True))

    async def app_named(self, name: str) -> modal.App:
        return await modal.App.lookup.aio(name, client=self.client, create_if_missing=True)

    async def create(self, *words: str, **wishes: Any) -> modal.Sandbox:
        usual: dict[str, Any] = {"app": self.app, "image": self.image, "timeout": 120, "block_network": True}
        return await modal.Sandbox.create.aio(*words, client=self.client, **(usual | wishes))

    async def listed(self, **tags: str) -> set[str]:
        found = modal.Sandbox.list.aio(app_id=self.app.app_id, tags=tags, client=self.client)
        return {sandbox.object_id async for sandbox in found}


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 120.0) -> None:
    """Raises TimeoutError when it does not come true."""
    async with asyncio.timeout(seconds):
        while not await true():  # noqa: ASYNC110 what is asked is a server, which tells of nothing by itself
            await asyncio.sleep(0.05)
