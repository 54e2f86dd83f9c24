"""A line that breaks: a proxy for one TCP or Unix socket that cuts, stalls and slows what goes through it.

It runs in a thread of its own, so that it serves whatever speaks through it: an event loop, threads, another process.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from held_port import HeldPort

_PIECE = 65_536
_ANSWER_S = 60.0


class FaultProxy:
    """`target` and `url` are `unix:///…`, or any scheme with a host and a port. Use it as a context.

    For a Unix socket, `folder` is where its own one lies. `felt` counts the ends that a fault cut off and the pieces
    that it held back: without one, nobody was there to notice it.
    """

    def __init__(self, target: str, folder: Path | None = None) -> None:
        self._target = urlsplit(target)
        self._path = str(folder / "line.sock") if folder and self._target.scheme == "unix" else None
        if self._target.scheme == "unix" and not self._path:
            raise ValueError("a Unix socket needs a folder")
        self._port = None if self._path else HeldPort()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._bytes_per_s: float | None = None
        self.accepted = 0
        self.felt = 0

    @property
    def url(self) -> str:
        if self._path:
            return f"unix://{self._path}"
        number = self._port.number if self._port else 0
        return self._target._replace(netloc=f"{self._credentials}127.0.0.1:{number}").geturl()

    @property
    def _credentials(self) -> str:
        return self._target.netloc.rpartition("@")[0] + "@" if "@" in self._target.netloc else ""

    def cut(self) -> None:
        """Whoever is connected sees the end; whoever comes is refused, until `heal`."""
        self._do(self._cut())

    def break_once(self) -> None:
        """Whoever is connected sees the end, and may come back at once."""
        self._do(self._abort())

    def stall(self) -> None:
        """Connections stay, and new ones are taken, but no byte passes until `heal`."""
        self._do(self._set(flowing=False))

    def slow(self, bytes_per_s: float) -> None:
        """Each connection passes so many bytes a second, in each direction."""
        self._do(self._set(bytes_per_s=bytes_per_s))

    def heal(self) -> None:
        """Bytes that waited go on; whoever was cut off may come back."""
        self._do(self._listen())

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_ANSWER_S)
        self._loop.close()
        if self._port:
            self._port.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_ANSWER_S)

    async def _set(self, *, flowing: bool = True, bytes_per_s: float | None = None) -> None:
        self._bytes_per_s = bytes_per_s
        (self._flowing.set if flowing else self._flowing.clear)()

    async def _listen(self) -> None:
        await self._set()
        if self._server:
            return
        if self._path:
            self._server = await asyncio.start_unix_server(self._accept, self._path)
        elif self._port:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port.number)

    async def _cut(self) -> None:
        if self._server:
            self._server.close()
            self._server = None
            if self._path:
                Path(self._path).unlink(missing_ok=True)  # noqa: ASYNC240  nobody else is on this loop
        await self._abort()

    async def _abort(self) -> None:
        self.felt += len(self._open)
        for writer in list(self._open):
            writer.transport.abort()

    async def _close(self) -> None:
        await self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._server:  # it came before the cut, and is heard of after it
            writer.transport.abort()
            return
        self.accepted += 1
        self._open.add(writer)
        try:
            await self._serve(reader, writer)
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._let_through()
        if self._target.scheme == "unix":
            to_target = await asyncio.open_unix_connection(self._target.path)
        else:
            to_target = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._open.add(to_target[1])
        both = [
            asyncio.create_task(self._pass_on(reader, to_target[1])),
            asyncio.create_task(self._pass_on(to_target[0], writer)),
        ]
        self._tasks.update(both)
        try:
            await asyncio.wait(both)
        finally:
            self._tasks.difference_update(both)
            self._open.discard(to_target[1])
            for end in (writer, to_target[1]):
                end.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """An end in one direction is handed on as such: the other may go on."""
        with contextlib.suppress(OSError):
            while piece := await reader.read(self._piece()):
                await self._let_through()
                if self._bytes_per_s:
                    await asyncio.sleep(len(piece) / self._bytes_per_s)
                writer.write(piece)
                await writer.drain()
            await self._flowing.wait()
            writer.write_eof()

    async def _let_through(self) -> None:
        self.felt += not self._flowing.is_set()
        await self._flowing.wait()

    def _piece(self) -> int:
        return max(1, min(_PIECE, int(self._bytes_per_s / 20))) if self._bytes_per_s else _PIECE
