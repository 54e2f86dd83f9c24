"""A gRPC server that can be cut off and come back on the same port."""

import asyncio
from typing import Any

from grpclib.protocol import H2Protocol
from grpclib.server import Server

from held_port import HeldPort
from tests.modal_emulator.service import abort

_ACCEPTING = 5  # turns of the loop, after which all that came has its connection


class _Server(Server):
    """grpclib's own, which remembers who is connected: it has no face for cutting a wire."""

    def __init__(self, service: Any) -> None:
        super().__init__([service])
        self.connected: list[H2Protocol] = []

    def _protocol_factory(self) -> H2Protocol:
        self.connected = [known for known in self.connected if not _is_over(known)]
        self.connected.append(super()._protocol_factory())
        return self.connected[-1]


def _is_over(known: H2Protocol) -> bool:
    """One that is being accepted has no connection yet."""
    return hasattr(known, "connection") and known.connection.is_closing()


class Listener:
    def __init__(self, service: Any) -> None:
        self._service = service
        self._server: _Server | None = None
        self._port = HeldPort()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port.number}"

    async def listen(self) -> None:
        if self._server is None:
            self._server = _Server(self._service)
            await self._server.start("127.0.0.1", self._port.number)

    async def cut(self) -> None:
        """Whoever is connected sees a closed connection; whoever comes is refused."""
        server, self._server = self._server, None
        if server:
            server.close()
            for _ in range(_ACCEPTING):
                await asyncio.sleep(0)
            for known in server.connected:
                abort(known.connection)
