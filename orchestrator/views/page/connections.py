"""A connection that says what it wants and takes the answer, or goes.

Anybody on the machine can open connections, say nothing or half of a request, and keep them: the server's room for
connections would be full of those. So half a request has some seconds, and of very many the oldest goes at once. An
answer that is not read has some seconds, too.
"""

import asyncio
import weakref

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

REQUEST_S = 10.0
# Until an answer that is held up by its reader goes on.
ANSWER_S = 30.0
MOST_WAITING = 128

_waiting: "weakref.WeakKeyDictionary[ServerState, dict[Prompt, asyncio.TimerHandle]]" = weakref.WeakKeyDictionary()


class Handshakes:
    """Connections that are not over with TLS's beginning, and so are no connections of the server's yet. Each is a task
    of the loop, in which `begun` is called.
    """

    def __init__(self) -> None:
        self._open: dict[asyncio.Task[object], None] = {}

    def begun(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is accepted in a task")
        if len(self._open) >= MOST_WAITING:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        self._open[task] = None
        task.add_done_callback(lambda it: self._open.pop(it, None))


class Prompt(H11Protocol):
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its own parent's
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_request()
        else:
            self._forget()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(ANSWER_S, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        if self._unread:
            self._unread.cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        """From its first byte, or from the connection itself; more bytes give no more time."""
        waiting = _waiting.setdefault(self.server_state, {})
        if self in waiting or self.transport.is_closing():
            return
        if len(waiting) >= MOST_WAITING:
            next(iter(waiting))._give_up()
        waiting[self] = self.loop.call_later(REQUEST_S, self._give_up)

    def _give_up(self) -> None:
        self._forget()
        self.transport.abort()

    def _forget(self) -> None:
        timer = _waiting.get(self.server_state, {}).pop(self, None)
        if timer:
            timer.cancel()
