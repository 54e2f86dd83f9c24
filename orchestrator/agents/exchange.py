"""Requests of an agent, answered by the gateway's app, and the answers cut into messages for the way down."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import structlog

from orchestrator.agents.messages import Broken, Gone, Request
from orchestrator.agents.steering import MESSAGES, Instructions
from orchestrator.llm.asgi import Answered, CutShort, asked
from orchestrator.llm.line import App

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
        self._open: dict[int, asyncio.Task[None]] = {}
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
        self._open[request.id] = asyncio.create_task(self._serve(request))

    def gone(self, message: Gone) -> None:
        if known := self._open.get(message.id):
            known.cancel()

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
        serving = list(self._open.values())
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)

    async def _serve(self, request: Request) -> None:
        number, last = request.id, "cut"
        try:
            body = self._instructions.put_into(request)
            way = asked(self._app, request.method, request.path, dict(request.headers), body, request.query)
            async with way as answered:
                self._count(request, answered)
                self.tell(["head", number, answered.status, _texts(answered.headers)])
                async for piece in answered.chunks:
                    for start in range(0, len(piece), PIECE):
                        await self._room()
                        self.tell(["body", number, piece[start : start + PIECE]])
            last = "end"
        except CutShort:
            self.failed += 1
        except Exception as error:  # noqa: BLE001  the gateway's own failure is not the agent's, which sees a cut line
            _log.warning("an agent's request failed", error=repr(error))
            self.failed += 1
        finally:
            self._open.pop(number, None)
            self.tell([last, number])

    async def _room(self) -> None:
        """A chamber that takes nothing must not make us keep everything."""
        while self._down_bytes > DOWN_BYTES:
            await self._taken.wait()

    def _count(self, request: Request, answered: Answered) -> None:
        """Our own word to slow down is not the provider's."""
        if request.path == MESSAGES:
            ours = any(name == b"x-blastdoor-wait" for name, _ in answered.headers)
            self.answered += answered.status < 400
            self.failed += answered.status >= 500 or (answered.status in (408, 429) and not ours)

    def _refuse(self, number: int) -> None:
        error = {"type": "rate_limit_error", "message": f"at most {OPEN} requests at a time"}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.tell(["head", number, 429, [["content-type", "application/json"]]])
        self.tell(["body", number, body])
        self.tell(["end", number])


def _texts(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
