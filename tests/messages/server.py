"""The server itself, on a thread and a loop of its own, so that a blocked test cannot block it."""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.messages.stage import Performance, Recorded
from tests.messages.steps import Refusal, Step, counted

KEY = "sk-ant-api03-of-the-test-server"
NEEDED = {"model": str, "max_tokens": int, "messages": list}


class _Server(uvicorn.Server):
    """Ends at once. Its own way looks for an end every tenth of a second, and then waits for another."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.left = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.left.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        del sockets
        for server in self.servers:
            server.close()
        for task in self.server_state.tasks:
            task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class MessagesServer:
    """`with MessagesServer() as server:`; answers come from `play`, then from the function given to `answering`.

    A request that nothing is scripted for is answered with 400 and stays in `unscripted`. `count` says how many tokens
    a body has; None is a provider that does not count, a refusal one that does not count now.
    """

    def __init__(self, key: str = KEY) -> None:
        self.key = key
        self.requests: list[Recorded] = []
        self.counts: list[Recorded] = []
        self.unscripted: list[Recorded] = []
        self.count: Callable[[bytes], int | Refusal | None] = counted
        self._steps: deque[Step] = deque()
        self._function: Callable[[Recorded], Step] | None = None
        # Said to be TCP, or asyncio would not turn off the delay of small packets.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, name="messages-server")
        self._started = threading.Event()

    def play(self, *steps: Step) -> None:
        """One step a request, in this order."""
        self._steps.extend(steps)

    def answering(self, function: Callable[[Recorded], Step]) -> None:
        """What is asked when no step is left. It runs on the server's thread."""
        self._function = function

    def release(self) -> None:
        """All that hang go on."""
        self._loop.call_soon_threadsafe(self._released.set)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def __enter__(self) -> "MessagesServer":
        self._thread.start()
        self._started.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._loop.call_soon_threadsafe(self._uvicorn.left.set)
        self._thread.join(60)
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        routes = [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            backlog=2048,
        )
        self._uvicorn = _Server(config)
        self._started.set()
        await self._uvicorn.serve(sockets=[self._socket])

    async def _messages(self, request: Request) -> Any:
        recorded, refusal = await self._recorded(request, NEEDED)
        self.requests.append(recorded)
        return Performance(refusal or self._next(recorded), recorded, self._released)

    async def _count(self, request: Request) -> Any:
        recorded, refusal = await self._recorded(request, {"model": str, "messages": list})
        self.counts.append(recorded)
        tokens = refusal or self.count(recorded.raw)
        if isinstance(tokens, Refusal):
            return Performance(tokens, recorded, self._released)
        return Response("not found", 404) if tokens is None else JSONResponse({"input_tokens": tokens})

    async def _recorded(self, request: Request, needed: dict[str, type]) -> tuple[Recorded, Refusal | None]:
        raw = await request.body()
        recorded = Recorded(request.url.path, dict(request.headers), {}, raw)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key not in (request.headers.get("x-api-key"), bearer):
            return recorded, Refusal(401, "authentication_error", "invalid x-api-key")
        if "anthropic-version" not in request.headers:
            return recorded, Refusal(400, "invalid_request_error", "anthropic-version: header is required")
        try:
            recorded.body = json.loads(raw)
        except ValueError:
            return recorded, Refusal(400, "invalid_request_error", "the body is no JSON")
        for name, kind in needed.items():
            if not isinstance(recorded.body.get(name), kind):
                return recorded, Refusal(400, "invalid_request_error", f"{name}: Field required")
        return recorded, None

    def _next(self, recorded: Recorded) -> Step:
        if self._steps:
            return self._steps.popleft()
        if self._function is not None:
            return self._function(recorded)
        self.unscripted.append(recorded)
        return Refusal(400, "invalid_request_error", "nothing is scripted for this request")
