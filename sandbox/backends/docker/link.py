"""The attached streams of a container, over the engine's socket."""

import asyncio
import socket
from collections.abc import Iterable

from sandbox.clock import CallTimes, Clock
from sandbox.errors import Unavailable
from sandbox.wire.demux import Demultiplexer, Stream

RECEIVE_BYTES = 262_144


class DockerLink:
    """Live stdin, stdout and stderr. What `receive` returns is valid until the next call of it."""

    def __init__(self, connection: socket.socket, clock: Clock | None = None) -> None:
        self._connection = connection
        self.times = CallTimes(connection.fileno(), connection.fileno(), clock)
        self.arrived: float | None = None
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._demultiplexer = Demultiplexer()

    async def send(self, data: bytes) -> None:
        try:
            await self._loop.sock_sendall(self._connection, data)
        except (BrokenPipeError, ConnectionResetError):
            # The container has ended; the receiving side learns it and says how.
            return
        except OSError as error:
            raise Unavailable(f"the engine's connection broke: {error.strerror}") from error

    async def receive(self) -> Iterable[tuple[Stream, memoryview]]:
        try:
            count = await self._loop.sock_recv_into(self._connection, self._buffer)
        except ConnectionResetError:
            return []
        except OSError as error:
            raise Unavailable(f"the engine's connection broke: {error.strerror}") from error
        self.arrived = self.times.took(count)
        # Piece by piece as it is taken: single bytes, each a piece of its own, would keep everybody waiting.
        return self._demultiplexer.feed(self._view[:count]) if count else []

    def close(self) -> None:
        if self._connection.fileno() != -1:
            self.times.close()
        self._connection.close()
