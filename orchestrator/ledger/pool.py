"""Connections that stay open for the next caller: to make one costs more than what is said over it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.ledger.database import Connection, Database

_KEPT = 5


class Pool:
    """For any number of threads, each of which takes a connection of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[Connection] = []
        self._is_closed = False
        self._guard = threading.Lock()

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.put_back(connection)

    def take(self) -> Connection:
        with self._guard:
            if self._idle:
                return self._idle.pop()
        return self._database.connect()

    def put_back(self, connection: Connection) -> None:
        with self._guard:
            if not connection.is_lost and not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        self.discard(connection)

    def discard(self, connection: Connection) -> None:
        """What ended one that is lost has most likely ended the others, so those go too."""
        if connection.is_lost:
            self._drop_idle()
        connection.close()

    def close(self) -> None:
        """One that is still lent is closed when it comes back."""
        self._is_closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
