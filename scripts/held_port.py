"""A port on loopback that stays one's own, whoever else looks for a free one.

A number that is only noted down is anybody's by the time a server takes it: the kernel gives it to the next listener
that asks for any port, and to the next connection that needs one. It does neither with a port that a socket is bound
to. Nobody listens on that socket, so one who connects is refused; a server that says SO_REUSEADDR, as PostgreSQL and
asyncio do, can still take the port, leave it and take it again.
"""

import socket
from types import TracebackType
from typing import Self


class HeldPort:
    """Held from the start until `close`, or for as long as it is used as a context."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = int(self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
