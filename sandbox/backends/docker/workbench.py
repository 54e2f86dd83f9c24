"""A container of a Docker engine that becomes an image: started once, changed by one command after the other."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sandbox import baking
from sandbox.backends.docker.engine import Engine
from sandbox.bake_steps import CAPABILITIES, STAGE
from sandbox.baking import last_word
from sandbox.errors import Refused, SandboxError
from sandbox.scratch import scratch

T = TypeVar("T", str, str | None)


def workbench(image: str, network: str) -> dict[str, object]:
    """A container that waits for its stdin to end, and is removed with it."""
    return {
        "Image": image,
        "Entrypoint": ["sh", "-c"],
        "Cmd": ["read _"],
        "User": "0:0",
        "WorkingDir": "/",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": network,
            "AutoRemove": True,
            "CapDrop": ["ALL"],
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "none", "Config": {}},
        },
    }


async def create(engine: Engine, creating: Coroutine[Any, Any, T]) -> T:
    """A cancelled caller must not leave a container: nothing would end one that was never started."""
    making = asyncio.create_task(creating)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        with contextlib.suppress(SandboxError):
            if made := await making:
                await engine.remove(made)
        raise


@contextlib.asynccontextmanager
async def running(engine: Engine, container: str) -> AsyncIterator[None]:
    """Started, and gone in the end, whatever happened."""
    connection = None
    try:
        connection = await engine.attach(container)
        await engine.start(container)
        yield
    finally:
        with contextlib.suppress(SandboxError):  # it ends with our connection in any case
            await engine.remove(container)
        if connection:
            connection.close()


class DockerWorkbench:
    """`container` runs; `base_id` is what it was made from."""

    def __init__(self, engine: Engine, container: str, base_id: str) -> None:
        self._engine = engine
        self._container = container
        self._base_id = base_id

    @classmethod
    async def of(cls, engine: Engine, container: str, base_id: str) -> "DockerWorkbench":
        code, output = await engine.execute(container, ["mkdir", STAGE], {})
        if code:
            raise Refused(f"making room: {last_word(output)} (exit {code})")
        return cls(engine, container, base_id)

    async def execute(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
        return await self._engine.execute(self._container, command, environment)

    async def put(self, archive: Path) -> None:
        await self._engine.put(self._container, STAGE, archive)

    @contextlib.asynccontextmanager
    async def fetching(self) -> AsyncIterator["DockerWorkbench"]:
        engine, name = self._engine, f"{baking.REPOSITORY}-fetch-{uuid.uuid4().hex[:12]}"
        container = await create(engine, engine.create(name, workbench(self._base_id, "host")))
        with scratch("bake") as folder:
            archive = folder / "debs.tar"
            async with running(engine, container):
                yield DockerWorkbench(engine, container, self._base_id)
                await engine.get(container, f"{STAGE}/debs", archive)
            await self.put(archive)
