"""What a step of the script can do to the one who asks: send, wait, hang, cut the connection."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send


class CutError(Exception):
    """Raised through the server, which then drops the connection without a last chunk."""


class GoneError(Exception):
    """The one who asked has hung up."""


@dataclass
class Recorded:
    """One request as it came. `gone` is true when the one who asked hung up before all was said."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    gone: bool = False
    done: bool = False
    events: list[str] = field(default_factory=list)


class Stage:
    def __init__(self, receive: Receive, send: Send, released: asyncio.Event) -> None:
        self._send = send
        self._released = released
        self._gone = asyncio.create_task(self._watched(receive))

    @staticmethod
    async def _watched(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def body(self, data: bytes, *, more: bool) -> None:
        if self._gone.done():
            raise GoneError
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def pause(self, seconds: float) -> None:
        await self._unless_gone(asyncio.sleep(seconds))

    async def hang(self) -> None:
        """Until the one who asked hangs up, or the test releases all that hang."""
        await self._unless_gone(self._released.wait())

    async def _unless_gone(self, waited: Any) -> None:
        task = asyncio.ensure_future(waited)
        try:
            await asyncio.wait({task, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
        if self._gone.done():
            raise GoneError

    def leave(self) -> None:
        self._gone.cancel()


class Performance:
    """A response that a step plays."""

    def __init__(self, step: Any, request: Recorded, released: asyncio.Event) -> None:
        self._step = step
        self._request = request
        self._released = released

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stage = Stage(receive, send, self._released)
        try:
            await self._step.play(self._request, stage)
            self._request.done = True
        except GoneError:
            self._request.gone = True
        finally:
            stage.leave()


def event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


async def until(true: Callable[[], bool]) -> None:
    """The server has a thread of its own: what it saw can only be looked at again. pytest's time-out is the end."""
    while not true():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.005)
