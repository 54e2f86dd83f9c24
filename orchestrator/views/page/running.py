"""The server at work, from its first request to its clean end."""

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from orchestrator.settings import Settings
from orchestrator.views.page.guard import Guard
from orchestrator.views.page.server import Server


async def serve(folders: Sequence[Path], settings: Settings | None, listening: socket.socket, token: str) -> None:
    """Until a signal ends it."""
    await serving(folders, settings, listening, token).serve(sockets=[listening])


def serving(folders: Sequence[Path], settings: Settings | None, listening: socket.socket, token: str) -> "Running":
    """Made in the event loop that it is to run in."""
    server = Server(folders, settings)
    config = uvicorn.Config(
        Guard(server, token, listening.getsockname()[1]),
        lifespan="off",
        ws="none",
        http="h11",
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
