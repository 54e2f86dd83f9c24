"""The pipes of a chamber, and the end of its first process.

They are over when both have ended and PID 1 is dead: the kernel lets it die only when nobody of its namespace lives any
more, so a program that closes its streams and lives on is not taken for dead.
"""

import asyncio
import os
from collections.abc import Iterable

from sandbox.backends.runc.runtime import Streams
from sandbox.clock import CallTimes, Clock
from sandbox.errors import Unavailable
from sandbox.wire.demux import Stream

RECEIVE_BYTES = 262_144
Piece = tuple[Stream, memoryview]


class RuncLink:
    """What `receive` returns is valid until the next call of it. `began` is called with the first process's grip.

    Raises Unavailable where there are no descriptors for its pipes.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        (stdin, self._stdin), (self._out, stdout), (self._err, stderr) = _pipes(3)
        self.theirs = Streams(stdin, stdout, stderr)
        self._open = {self._out: Stream.STDOUT, self._err: Stream.STDERR}
        for descriptor in (self._stdin, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._grip: int | None = None
        self._watched: set[int] = set()
        self._woken: asyncio.Future[None] | None = None
        self._piece: Piece | None = None
        self.times = CallTimes(self._stdin, self._out, clock)
        self.arrived: float | None = None
        self._closed = False

    def began(self, grip: int) -> None:
        self._grip = grip

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._closed:
            try:
                view = view[os.write(self._stdin, view) :]
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                return  # the chamber has ended; the receiving side learns it and says how
            except OSError as error:
                raise Unavailable(f"the chamber's pipe broke: {error.strerror}") from error

    async def receive(self) -> Iterable[tuple[Stream, memoryview]]:
        while not self._closed:
            if piece := self._piece or self._read_any():
                self._piece = None
                return [piece]
            if not self._open:
                break
            await self._readable(*self._open)
        if self._grip is not None and not self._closed:
            await self._readable(self._grip)
        return []

    def _read_any(self) -> Piece | None:
        return next((piece for descriptor in list(self._open) if (piece := self._read(descriptor))), None)

    def _read(self, descriptor: int) -> Piece | None:
        """What is there now; the end of a stream is remembered."""
        try:
            count = os.readv(descriptor, [self._view])
        except BlockingIOError:
            return None
        # The other one goes first next time: neither may keep the other waiting.
        stream = self._open.pop(descriptor)
        if not count:
            self._unwatch(descriptor)
            return None
        self._open[descriptor] = stream
        self.arrived = self.times.took(count) if stream is Stream.STDOUT else None
        return stream, self._view[:count]

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.times.close()
        grips = [self._grip] if self._grip is not None else []
        for descriptor in (self._stdin, self._out, self._err, *grips):
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
            os.close(descriptor)

    async def _readable(self, *descriptors: int) -> None:
        """They stay watched afterwards: to begin and to end that costs as much as the rest of a small frame."""
        self._woken = self._loop.create_future()
        for descriptor in descriptors:
            if descriptor not in self._watched:
                self._loop.add_reader(descriptor, self._came, descriptor)
                self._watched.add(descriptor)
        try:
            await self._woken
        finally:
            self._woken = None

    def _came(self, descriptor: int) -> None:
        """Taken at once, for the one who waits: until it is, we are told again in every turn of the loop."""
        if self._woken is None or self._woken.done():
            self._unwatch(descriptor)
            return
        try:
            self._piece = self._read(descriptor) if descriptor in self._open else None
            self._woken.set_result(None)
        except OSError as error:
            self._woken.set_exception(error)

    def _unwatch(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        self._watched.discard(descriptor)

    async def _writable(self) -> None:
        room = asyncio.Event()
        self._loop.add_writer(self._stdin, room.set)
        try:
            await room.wait()
        finally:
            if not self._closed:
                self._loop.remove_writer(self._stdin)


def _pipes(count: int) -> list[tuple[int, int]]:
    """All of them or none: those of a chamber that never was would be missing for good."""
    made: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            made.append(os.pipe())  # noqa: PERF401  those that were made must be known when one cannot be
    except OSError as error:
        for ends in made:
            for descriptor in ends:
                os.close(descriptor)
        raise Unavailable(f"start: no pipes for a chamber ({error.strerror}); raise `ulimit -n`") from error
    return made
