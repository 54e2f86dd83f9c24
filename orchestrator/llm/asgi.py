"""Drives an application in this process and hands on each piece of its answer as it comes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from orchestrator.llm.line import App, Message, Scope

Headers = tuple[tuple[bytes, bytes], ...]


class CutShort(Exception):
    """The application ended before its answer did."""


@dataclass(frozen=True)
class Answered:
    """`chunks` gives the body as it comes; raises CutShort where it breaks off. Nothing is kept beyond one piece."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]


@asynccontextmanager
async def asked(
    app: App, method: str, path: str, headers: Mapping[str, str], body: bytes, query: str = ""
) -> AsyncIterator[Answered]:
    """`async with asked(…) as answered:`; leaving it hangs up, and waits until the application has noticed.

    Raises CutShort where no answer begins.
    """
    wire = _Wire(body)
    task = asyncio.create_task(_run(app, _scope(method, path, headers, query), wire))
    try:
        start = await wire.next()
        if start is None:
            raise CutShort("no answer came")
        yield Answered(start["status"], tuple(start.get("headers", ())), wire.chunks(silent=method == "HEAD"))
    finally:
        wire.hang_up()
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def _run(app: App, scope: Scope, wire: "_Wire") -> None:
    try:
        await app(scope, wire.receive, wire.send)
    finally:
        wire.end()


def _scope(method: str, path: str, headers: Mapping[str, str], query: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "server": ("gateway", 80),
        "client": ("chamber", 0),
    }


class _Wire:
    """One message at a time: who sends waits until the last one was taken."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._gone = asyncio.Event()
        self._said: asyncio.Queue[Message | None] = asyncio.Queue()

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._gone.is_set():
            return
        self._said.put_nowait(message)
        await self._said.join()

    async def next(self) -> Message | None:
        message = await self._said.get()
        self._said.task_done()
        return message

    async def chunks(self, *, silent: bool) -> AsyncIterator[bytes]:
        """A `silent` answer, that to HEAD, has no body whatever the application sends."""
        while (message := await self.next()) is not None:
            if (data := message.get("body", b"")) and not silent:
                yield data
            if not message.get("more_body", False):
                return
        raise CutShort("the answer broke off")

    def end(self) -> None:
        """Those who still listen hear that nothing more comes."""
        self._said.put_nowait(None)

    def hang_up(self) -> None:
        self._gone.set()
