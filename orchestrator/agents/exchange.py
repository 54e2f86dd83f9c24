"""Requests of an agent, answered by the gateway's app, and the answers cut into messages for the way down."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import structlog

from orchestrator.agents.messages import Broken, Gone, Request
from orchestrator.agents.steering import Instructions
from orchestrator.llm.asgi import CutShort, asked
from orchestrator.llm.line import App
from orchestrator.llm.screening import SMALL
from orchestrator.offload import offload
from orchestrator.units import format_size

_log = structlog.get_logger()

OPEN = 32
REQUESTS = 20_000
UP_BYTES = 2 << 30
DOWN_BYTES = 4 << 20
PIECE = 1 << 20
# More than the shape of a message has around its words.
_SMALL = 64
_LEAST = 1024


class Exchange:
    """All requests of one agent. `down_bytes` is as much as one frame carries, and as much as waits for a chamber that
    does not take it.
    """

    def __init__(self, app: App, instructions: Instructions, down_bytes: int = DOWN_BYTES) -> None:
        self._app = app
        self._instructions = instructions
        self._most = max(_LEAST, down_bytes)
        self._open: dict[int, asyncio.Task[None]] = {}
        self._down: list[list[Any]] = []
        self._down_bytes = 0
        self._taken = asyncio.Event()
        self._turn = asyncio.Lock()
        self._requests = 0
        self._up_bytes = 0
        self.news = asyncio.Event()

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
            raise Broken(f"a flood: {self._requests} requests with {format_size(self._up_bytes)}")
        if len(self._open) >= OPEN:
            self._refuse(request.id)
            return
        self._open[request.id] = asyncio.create_task(self._serve(request))

    def gone(self, message: Gone) -> None:
        if known := self._open.get(message.id):
            known.cancel()

    def tell(self, message: list[Any]) -> None:
        self._down.append(message)
        self._down_bytes += _size(message)
        self.news.set()

    def take(self) -> list[list[Any]]:
        """What goes down with the next frame."""
        count, size = 0, 0
        for message in self._down:
            size += _size(message)
            if count and size > self._most:
                break
            count += 1
        taken, self._down = self._down[:count], self._down[count:]
        self._down_bytes = sum(map(_size, self._down))
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
        number, last, step = request.id, "cut", min(PIECE, self._most)
        try:
            body = await self._with_instructions(request)
            way = asked(self._app, request.method, request.path, dict(request.headers), body, request.query)
            async with way as answered:
                self.tell(["head", number, answered.status, _texts(answered.headers)])
                async for piece in answered.chunks:
                    for start in range(0, len(piece), step):
                        await self._room()
                        self.tell(["body", number, piece[start : start + step]])
            last = "end"
        except CutShort:
            pass
        except Exception as error:  # noqa: BLE001  the agent sees a cut line; whose fault it was, the gateway counts
            _log.warning("an agent's request failed", error=repr(error)[:300])
        finally:
            self._open.pop(number, None)
            self.tell([last, number])

    async def _with_instructions(self, request: Request) -> bytes:
        """One at a time: where an instruction goes is decided by the first question that it is put into."""
        if len(request.body) < SMALL:
            return self._instructions.put_into(request)
        async with self._turn:
            return await offload(self._instructions.put_into, request)

    async def _room(self) -> None:
        """A chamber that takes nothing must not make us keep everything."""
        while self._down_bytes > self._most:
            await self._taken.wait()

    def _refuse(self, number: int) -> None:
        error = {"type": "rate_limit_error", "message": f"at most {OPEN} requests at a time"}
        body = json.dumps({"type": "error", "error": error}).encode()
        self.tell(["head", number, 429, [["content-type", "application/json"]]])
        self.tell(["body", number, body])
        self.tell(["end", number])


def _size(message: list[Any]) -> int:
    """No less than what it takes of a frame."""
    texts = [part for part in message if isinstance(part, str | bytes)]
    pairs = [pair for part in message if isinstance(part, list) for pair in part]
    said = sum(len(text) for text in texts) + sum(_SMALL + len(name) + len(value) for name, value in pairs)
    return _SMALL + said


def _texts(headers: Sequence[tuple[bytes, bytes]]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]
