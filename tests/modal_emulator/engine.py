"""The few calls of a Docker engine that the emulator makes, on asyncio and on nothing of Blastdoor's.

The backends under test talk to engines through code of their own; an emulator built on it would share its faults.
"""

import asyncio
import json
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

_VERSION = "/v1.41"


class EngineError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Engine:
    """One connection for each request: simple, and a hijacked one is nobody else's."""

    def __init__(self, host: str) -> None:
        self._kind, _, self._address = host.partition("://")
        if self._kind not in ("unix", "tcp"):
            raise ValueError(f"DOCKER_HOST is {host!r}: give unix:// or tcp://")

    async def json(self, method: str, path: str, body: object = None, **query: str) -> Any:
        reader, writer, headers = await self._ask(method, path, body, query)
        try:
            data = b"".join([part async for part in _parts(reader, headers)])
        finally:
            writer.close()
        return json.loads(data) if data.strip() else None

    async def lines(self, method: str, path: str, body: object = None, **query: str) -> AsyncIterator[Any]:
        """JSON values as they come, one a line: events, the progress of a build."""
        reader, writer, headers = await self._ask(method, path, body, query)
        kept = b""
        try:
            async for part in _parts(reader, headers):
                *whole, kept = (kept + part).split(b"\n")
                for line in whole:
                    if line.strip():
                        yield json.loads(line)
        finally:
            writer.close()

    async def unpack(self, container: str, archive: bytes) -> None:
        _, writer, _ = await self._ask("PUT", f"/containers/{container}/archive", archive, {"path": "/"})
        writer.close()

    async def hijack(self, path: str, body: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """After the reply, the connection is the process's own: stdin one way, framed stdout and stderr the other."""
        reader, writer, _ = await self._ask("POST", path, body, {}, upgrade=True)
        return reader, writer

    async def _ask(
        self, method: str, path: str, body: object, query: dict[str, str], upgrade: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, dict[str, str]]:
        reader, writer = await self._connect()
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
        target = _VERSION + path + ("?" + urllib.parse.urlencode(query) if query else "")
        head = [f"{method} {target} HTTP/1.1", "Host: engine", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
        head.append("Connection: Upgrade\r\nUpgrade: tcp" if upgrade else "Connection: close")
        writer.write("\r\n".join([*head, "", ""]).encode() + data)
        await writer.drain()
        status = int((await reader.readline()).split(b" ")[1])
        headers: dict[str, str] = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if status >= 400:
            message = b"".join([part async for part in _parts(reader, headers)]).decode(errors="replace")
            writer.close()
            raise EngineError(status, message)
        return reader, writer, headers

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._kind == "unix":
            return await asyncio.open_unix_connection(self._address)
        name, _, port = self._address.rstrip("/").rpartition(":")
        return await asyncio.open_connection(name, int(port))


async def _parts(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
            yield await reader.readexactly(size)
            await reader.readline()
    elif "content-length" in headers:
        if length := int(headers["content-length"]):
            yield await reader.readexactly(length)
    else:
        while data := await reader.read(65_536):
            yield data
