"""Requests of an agent, answered by the gateway's app, and the answers cut into messages for the way down."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import structlog

from orchestrator.agents.messages import Broken, Gone, Request
from orchestrator.agents.steering import Instructions
from orchestrator.llm.line import App, Message

_log = structlog.get_logger()

OPEN = 32
REQUESTS = 20_000
UP_BYTES = 2 << 30
# As much as one frame carries, and as much as waits for a chamber that does not take it.
DOWN_BYTES = 4 << 20
PIECE = 1 << 20


class Exchange:
    """All requests of one agent. `answered` and `failed` count what became of those that reached a model: it is the
    gateway's word, not the agent's.
    """

    def __init__(self, app: App, instructions: Instructions) -> None:
        self._app = app
        self._instructions = instructions
        self._open: dict[int, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self._down: list[list[Any]] = []
        self._down_bytes = 0
        self._taken = asyncio.Event()
        self._requests = 0
        self._up_bytes = 0
        self.news = asyncio.Event()
        self.answered = 0
        self.failed = 0

    @property
    def busy(self) -> bool:
        return bool(self._open)

    def request(self, request: Request) -> None:
        """Raises Broken for one that no forwarder would send."""
        self._requests += 1
        self._up_bytes += len(request.body)
        if request.id in self._open:
            raise Broken("two requests with one number")
        if self._requests > REQUESTS or self._up_bytes > UP_BYTES:
            raise Broken(f"a flood: {self._requests} requests with {self._up_bytes} bytes")
        if len(self._open) >= OPEN:
            self._refuse(request.id)
            return
        gone = asyncio.Event()
        serving = asyncio.create_task(self._serve(request, gone))
        self._open[request.id] = (serving, gone)

    def gone(self, message: Gone) -> None:
        if known := self._open.get(message.id):
            known[1].set()

    def tell(self, message: list[Any]) -> None:
        self._down.append(message)
        self._down_bytes += len(message[2]) if message[0] == "body" else 64
        self.news.set()

    def take(self) -> list[list[Any]]:
        """What goes down with the next frame."""
        count, size = 0, 0
        for message in self._down:
            size += len(message[2]) if message[0] == "body" else 64
            if count and size > DOWN_BYTES:
                break
            count += 1
        taken, self._down = self._down[:count], self._down[count:]
        self._down_bytes = sum(len(message[2]) if message[0] == "body" else 64 for message in self._down)
        if not self._down:
            self.news.clear()
        self._taken.set()
        self._taken.clear()
        return taken

    async def close(self) -> None:
        """Give up what is still open; the gateway settles it."""
        serving = [task for task, _ in self._open.values()]
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)

    async def _serve(self, request: Request, gone: asyncio.Event) -> None:
        answer = _Answer(self, request, self._instructions.put_into(request), gone)
        try:
            await self._app(_scope(request), answer.receive, answer.send)
        except Exception as error:  # noqa: BLE001  the gateway's own failure is not the agent's; it sees a broken line
            _log.warning("an agent's request failed", error=repr(error))
            self.failed += 1
        finally:
            self._open.pop(request.id, None)
            if not gone.is_set():
                self.tell(["end" if answer.whole else "cut", request.id])

    async def room(self) -> None:
        """A chamber that takes nothing must not make us keep everything."""
        while self._down_bytes > DOWN_BYTES:
            await self._taken.wait()

    def count(self, request: Request, status: int) -> None:
        if request.path.endswith("/messages"):
            self.answered += status < 400
            self.failed += status == 429 or status >= 500

    def _refuse(self, number: int) -> None:
        error = {"type": "rate_limit_error", "message": f"at most {OPEN} requests at a time"}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.tell(["head", number, 429, [["content-type", "application/json"]]])
        self.tell(["body", number, body])
        self.tell(["end", number])


class _Answer:
    """One conversation with the app, in its own protocol (ASGI)."""

    def __init__(self, exchange: Exchange, request: Request, body: bytes, gone: asyncio.Event) -> None:
        self._exchange = exchange
        self._request = request
        self._body: bytes | None = body
        self._gone = gone
        self.whole = False

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._gone.is_set():
            return
        number = self._request.id
        if message["type"] == "http.response.start":
            self._exchange.count(self._request, message["status"])
            self._exchange.tell(["head", number, message["status"], _texts(message.get("headers", ()))])
        elif message["type"] == "http.response.body":
            whole = bytes(message.get("body", b""))
            for start in range(0, len(whole), PIECE):
                await self._exchange.room()
                self._exchange.tell(["body", number, whole[start : start + PIECE]])
            self.whole = not message.get("more_body", False)


def _texts(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _scope(request: Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in request.headers],
        "client": None,
        "server": ("127.0.0.1", 80),
    }
