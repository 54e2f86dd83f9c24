"""A Docker engine as a subject: cut off by a proxy of our own, orphaned by a process of our own."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from sandbox.answers import flag, needed
from sandbox.backend import Backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.backends.docker.warden import end_all
from sandbox.config import DockerConfig
from sandbox.conformance.local_owner import killed_owner
from sandbox.environment import DOCKER
from sandbox.errors import Lost

# Others who look after the engine end an orphan once it is over: until then it is there for us to see.
ORPHANS_LEASE = 6.0
SHORT_SILENCE = 2.0


class EngineProxy:
    """Passes bytes to and fro between a socket of ours and the engine's, until it is cut."""

    def __init__(self, engine_host: str) -> None:
        self._engine_host = engine_host
        self._folder = tempfile.TemporaryDirectory(prefix="blastdoor-proxy-")
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.host = f"unix://{self._folder.name}/engine.sock"

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.host.removeprefix("unix://"))

    async def cut(self) -> None:
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        self._folder.cleanup()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await self._connect()
        both = [(reader, back), (there, writer)]
        tasks = [asyncio.create_task(_pump(source, target)) for source, target in both]
        self._tasks.update(tasks)
        await asyncio.wait(tasks)
        self._tasks.difference_update(tasks)
        for end in (writer, back):
            end.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        kind, _, address = self._engine_host.partition("://")
        if kind == "unix":
            return await asyncio.open_unix_connection(address)
        name, _, port = address.rstrip("/").rpartition(":")
        return await asyncio.open_connection(name, int(port))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()


class DockerOrphan:
    def __init__(self, engine: Engine, container: str) -> None:
        self._engine = engine
        self._container = container

    async def alive(self) -> bool:
        try:
            return flag(await self._engine.inspect(self._container), "State", "Running")
        except Lost:
            return False

    async def exists(self) -> bool:
        try:
            await self._engine.inspect(self._container)
        except Lost:
            return False
        return True


class DockerSubject:
    """One engine with one runtime."""

    def __init__(self, config: DockerConfig) -> None:
        self._config = config
        self.name = f"docker/{config.runtime}"
        self.lacks: Mapping[str, str] = (
            {}
            if config.runtime.startswith("runsc")
            else {"needs_refused_at_open": "every limit is held by somebody here"}
        )
        self._left: list[str] = []
        self._engine: Engine | None = None

    async def connect(self) -> Backend:
        return await self._config.connect()

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        proxy = EngineProxy(self._config.host)
        await proxy.start()
        deadlines = replace(self._config.deadlines, silence=SHORT_SILENCE)  # it never comes back
        config = self._config.model_copy(update={"host": proxy.host, "deadlines": deadlines})
        backend = await DockerBackend.connect(config)
        self._left.append(backend.owner)

        async def cut() -> None:
            await proxy.cut()
            # It would try for minutes to reach an engine that never comes back; `close` sweeps in its place.
            if backend.warden_pid:
                os.kill(backend.warden_pid, signal.SIGKILL)

        return backend, cut

    async def orphan(self) -> DockerOrphan:
        config = self._config.model_copy(update={"lease": ORPHANS_LEASE})
        name = await killed_owner(config, DOCKER)
        self._left.append(name)
        if not self._engine:
            self._engine = await asyncio.to_thread(Engine, self._config.host)
        found = await self._engine.containers(f"{OWNER_LABEL}={name}")
        return DockerOrphan(self._engine, needed(found[0], "Id"))

    async def close(self) -> None:
        while self._left:
            await end_all(self._left.pop(), self._config.host)
        if self._engine:
            self._engine.close()
            self._engine = None
