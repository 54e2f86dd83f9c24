"""One command in a sandbox: its input by offset, its output kept for whoever reconnects, its end."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from typing import Any

from grpclib import GRPCError, Status

from sandbox.answers import flag, needed, text
from tests.modal_emulator.engine import Engine, EngineError

_AHEAD = 8 << 20  # more than this unread, and the command waits in its write
_BEHIND = 80 << 20  # what a client that reconnects may still ask for: its window is 64 MiB
_CHUNK = 1 << 18
_SILENCE_S = 3.0  # of a command that is over and whose output is still open: a child of it holds the pipe
_STDOUT = 1


class Output:
    """A stream by offsets. Reading it again from where a connection broke gives the same bytes."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._first = 0
        self._read = 0
        self._ended = False
        self._changed = asyncio.Condition()

    async def write(self, data: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._first + len(self._data) - self._read < _AHEAD or self._ended)
            self._data += data
            self._changed.notify_all()

    async def end(self) -> None:
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def read(self, offset: int) -> AsyncIterator[bytes]:
        while True:
            async with self._changed:
                while not self._ended and self._first + len(self._data) <= offset:
                    await self._changed.wait()
                if offset < self._first:
                    raise GRPCError(Status.OUT_OF_RANGE, f"output before {self._first} is no longer kept")
                data = bytes(self._data[offset - self._first : offset - self._first + _CHUNK])
            if not data:
                return
            yield data
            offset += len(data)
            await self._mark(offset)

    async def _mark(self, offset: int) -> None:
        async with self._changed:
            self._read = max(self._read, offset)
            if (surplus := self._read - _BEHIND - self._first) > 0:
                del self._data[:surplus]
                self._first += surplus
            self._changed.notify_all()


class Exec:
    def __init__(self, engine: Engine, container: str, request: Any) -> None:
        self._engine = engine
        self._container = container
        self._request = request
        self.docker_id = ""
        self._writer: asyncio.StreamWriter | None = None
        self._written = 0
        self._heard = 0
        self._input_ended = False
        self._tasks: list[asyncio.Task[None]] = []
        self.stdout = Output()
        self.stderr = Output()
        self.over = asyncio.Event()
        self.code: int | None = None

    async def start(self) -> None:
        body = {
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Cmd": list(self._request.command_args),
            "Env": [f"{name}={value}" for name, value in self._request.env.items()],
            "WorkingDir": self._request.workdir,
        }
        try:
            made = await self._engine.json("POST", f"/containers/{self._container}/exec", body)
            self.docker_id = needed(made, "Id")
            reader, self._writer = await self._engine.hijack(
                f"/exec/{self.docker_id}/start", {"Detach": False, "Tty": False}
            )
        except EngineError as failure:
            raise GRPCError(Status.NOT_FOUND, f"the task is gone: {failure}") from failure
        pump = asyncio.create_task(self._pump(reader))
        self._tasks = [pump, asyncio.create_task(self._watch(pump))]

    async def write(self, offset: int, data: bytes, eof: bool) -> None:
        """Bytes that were written already are skipped, so that a retry writes nothing twice."""
        if offset > self._written:
            raise GRPCError(Status.OUT_OF_RANGE, f"{self._written} bytes were written, {offset} is beyond")
        fresh = data[self._written - offset :]
        if self._writer is None or (fresh and self._input_ended):
            raise GRPCError(Status.FAILED_PRECONDITION, "stdin is closed")
        if self.over.is_set():
            return
        self._written += len(fresh)
        with contextlib.suppress(ConnectionError):
            if fresh:
                self._writer.write(fresh)
            if eof and not self._input_ended:
                self._input_ended = True
                self._writer.write_eof()
            await self._writer.drain()

    async def close(self) -> None:
        """The sandbox is gone, and all that ran in it."""
        for task in self._tasks:
            task.cancel()
        if self._writer:
            self._writer.close()
        await self._finish()

    async def _pump(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                kind, size = struct.unpack(">BxxxL", await reader.readexactly(8))
                data = await reader.readexactly(size)
                self._heard += size
                stream = self.stdout if kind == _STDOUT else self.stderr
                await stream.write(data)

    async def died(self, code: int) -> None:
        """The command's own end counts, not that of children which keep its output open."""
        if self.code is None:
            self.code = code
            heard = -1
            while heard != self._heard and not self._tasks[0].done():
                heard = self._heard
                await asyncio.wait(self._tasks[:1], timeout=_SILENCE_S)
            await self._finish()

    async def _watch(self, pump: asyncio.Task[None]) -> None:
        """For a command that never started: the engine tells of no death then."""
        await asyncio.wait([pump])
        state = await self._engine.json("GET", f"/exec/{self.docker_id}/json")
        if not flag(state, "Running") and (code := text(state, "ExitCode")):
            await self.died(int(code))

    async def _finish(self) -> None:
        await self.stdout.end()
        await self.stderr.end()
        self.over.set()
