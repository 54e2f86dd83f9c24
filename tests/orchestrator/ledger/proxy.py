"""A line to a database that is cut at chosen moments, so that either side can be left in doubt."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from enum import Enum


class Cut(Enum):
    """Where the line breaks. A COMMIT that was answered is done, although nobody heard of it."""

    NOT = "not"
    BEFORE = "before the COMMIT arrives"
    AFTER = "after the COMMIT is done, before its answer arrives"


class Proxy:
    """Listens on loopback; `choose` is asked for every COMMIT, `cuts` counts what was cut, `turns` how often a client
    spoke again after an answer: what a line with a delay waits for.
    """

    def __init__(self, target: int) -> None:
        self.choose: Callable[[], Cut] = lambda: Cut.NOT
        self.cuts = 0
        self.turns = 0
        self._answered = True
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server, contextlib.suppress(OSError):
            silent = threading.Event()
            back = threading.Thread(target=self._answer, args=(client, server, silent), daemon=True)
            back.start()
            while data := client.recv(1 << 16):
                self.turns += self._answered
                self._answered = False
                cut = self.choose() if b"COMMIT\0" in data else Cut.NOT
                if cut is Cut.BEFORE:
                    self.cuts += 1
                    break
                if cut is Cut.AFTER:
                    silent.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)
            client.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if silent.is_set() and b"COMMIT\0" in data:
                    self.cuts += 1
                    break
                self._answered = True
                client.sendall(data)
            for side in (server, client):
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
