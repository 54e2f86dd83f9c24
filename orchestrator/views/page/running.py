"""The server at work, from its first request to its clean end."""

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import uvicorn

from orchestrator.settings import Settings
from orchestrator.views.page import connections
from orchestrator.views.page.entrance import Entrance
from orchestrator.views.page.guard import Guard
from orchestrator.views.page.listening import Listening
from orchestrator.views.page.server import Server

# How old the date in an answer's header may be.
_TICK_S = 1.0


async def serve(folders: Sequence[Path], settings: Settings | None, listening: Listening, entrance: Entrance) -> None:
    """Until a signal ends it."""
    await serving(folders, settings, listening, entrance).serve(sockets=[listening.socket])


def serving(folders: Sequence[Path], settings: Settings | None, listening: Listening, entrance: Entrance) -> "Running":
    """Made in the event loop that it is to run in."""
    server = Server(folders, settings, control=entrance.is_control)
    certificate = listening.certificate
    config = uvicorn.Config(
        Guard(server, entrance, listening.port, listening.hosts, listening.scheme),
        lifespan="off",
        ws="none",
        http=connections.Prompt,
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=str(certificate.key) if certificate else None,
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=512,
        timeout_graceful_shutdown=2,
    )
    return Running(config, server)


class Running(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        """A signal is heard at once; uvicorn would look for one ten times a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_S):
                    await self._ending.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called in the event loop."""
        super().handle_exit(sig, frame)
        self._ending.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """With TLS a connection is ours only after its handshake, for which uvicorn would give any number of them a
        minute.
        """
        await super().startup([])
        config, loop = self.config, asyncio.get_running_loop()
        patience = connections.REQUEST_S if config.ssl else None
        handshakes = connections.Handshakes()

        def make() -> connections.Prompt:
            if config.ssl:
                handshakes.begun()
            return connections.Prompt(config, self.server_state, self.lifespan.state)

        for it in sockets or []:
            made = await loop.create_server(
                make, sock=it, ssl=config.ssl, ssl_handshake_timeout=patience, backlog=config.backlog
            )
            self.servers.append(made)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams first: they would never end by themselves, and are waited for."""
        await self._server.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal is how this is meant to end, so it is not raised once more afterwards."""
        loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
