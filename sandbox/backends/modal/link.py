"""The streams of a command in a sandbox, as one."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from sandbox.errors import Denied, Lost, SandboxError
from sandbox.wire.demux import Stream

# The package holds what it was given until the worker has it, sixteen MiB at most.
SEND_BYTES = 4 * 1024 * 1024
WAITING = 64
PAUSE_S = 0.5
# Streams of a sandbox that was ended end by themselves; what does not is cancelled.
ENDING_S = 10.0

Piece = tuple[Stream, memoryview]


class Streams(Protocol):
    """Both go on where they were, when they are called again after a failure."""

    async def write(self, data: bytes | memoryview) -> None: ...

    def read(self, stream: Stream) -> AsyncIterator[bytes]: ...


class ModalLink:
    """Live stdin, stdout and stderr. `is_over` asks the provider whether the whole sandbox has ended.

    A stream that breaks because its sandbox is gone is the end of a stream. Any other one is taken up where it was; if
    that fails for `patience_s`, it is the provider's failure. The package itself gives up after ten seconds.
    """

    def __init__(self, streams: Streams, is_over: Callable[[], Awaitable[bool]], patience_s: float) -> None:
        self._streams = streams
        self._is_over = is_over
        self._patience_s = patience_s
        self._pieces: asyncio.Queue[Piece | SandboxError | None] = asyncio.Queue(WAITING)
        self._ended = False
        self._closed = False
        self._failure: SandboxError | None = None
        self._reading = asyncio.create_task(self._read_both())

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            for start in range(0, len(view), SEND_BYTES):
                await self._send(view[start : start + SEND_BYTES])
        except Lost:
            # The command has ended; the receiving side learns it and says how.
            return

    async def receive(self) -> list[Piece]:
        if self._ended:
            return self._last_word()
        first = await self._pieces.get()
        pieces = [first]
        while not self._pieces.empty():
            pieces.append(self._pieces.get_nowait())
        taken: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, tuple):
                taken.append(piece)
            else:
                self._ended, self._failure = True, piece
        return taken or self._last_word()

    def _last_word(self) -> list[Piece]:
        """A failure that came together with data is told once the data is taken: it is not the end of a program."""
        failure, self._failure = self._failure, None
        if failure:
            raise failure
        return []

    def close(self) -> None:
        """The sandbox is dead: nothing more will come.

        Reading is not cancelled in the middle of a call of the package, which may leave an exception to nobody then:
        what still comes is dropped until the streams end.
        """
        if self._closed:
            return
        self._closed = True
        asyncio.get_running_loop().call_later(ENDING_S, self._reading.cancel)
        while not self._pieces.empty():
            self._pieces.get_nowait()
        self._pieces.put_nowait(None)

    async def _read_both(self) -> None:
        readers = [asyncio.create_task(self._read(stream)) for stream in Stream]
        try:
            await asyncio.gather(*readers)
        except Lost:
            # Modal says itself that the command is gone; why, its record of the sandbox tells.
            await self._put(None)
        except SandboxError as error:
            await self._put(error)
        else:
            await self._put(None)
        finally:
            for reader in readers:
                reader.cancel()

    async def _send(self, data: memoryview) -> None:
        since = time.monotonic()
        while True:
            try:
                return await self._streams.write(data)
            except SandboxError as error:
                await self._take_up(error, since)
                data = data[:0]  # the package has it, and sends it first

    async def _read(self, stream: Stream) -> None:
        since = None
        while True:
            try:
                async with contextlib.aclosing(self._streams.read(stream)) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        since = None
                        await self._put((stream, memoryview(piece)))
                return
            except SandboxError as error:
                since = since or time.monotonic()
                await self._take_up(error, since)

    async def _take_up(self, error: SandboxError, since: float) -> None:
        """Wait a moment before the next try; raises the error where there is no use in one."""
        if self._closed or isinstance(error, Lost | Denied):
            raise error
        if await self._gone():
            raise Lost("the sandbox has ended") from error
        if time.monotonic() - since >= self._patience_s:
            raise error
        await asyncio.sleep(PAUSE_S)

    async def _put(self, piece: Piece | SandboxError | None) -> None:
        if not self._closed:
            await self._pieces.put(piece)

    async def _gone(self) -> bool:
        try:
            return await self._is_over()
        except SandboxError:
            return False
