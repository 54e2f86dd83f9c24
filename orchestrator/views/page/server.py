"""What the page asks for, and the answers: all of it reading, each answer bounded."""

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from orchestrator.ledger import Missing
from orchestrator.settings import Settings
from orchestrator.text import printable, short
from orchestrator.views.page import pages, texts
from orchestrator.views.page.followed import UNREADABLE, Followed, NotThere
from orchestrator.views.page.overview import Overview
from orchestrator.views.page.streams import Audience, Broadcast, TooMany, written
from orchestrator.views.page.waking import Notices

# Campaigns that are kept in memory; one that nobody looks at gives way to the next.
MOST_OPEN = 6
_SMALL = 1400
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Work = Callable[[Followed, Request], Any]


class Server:
    """Made in the event loop that it serves in; `close` ends every stream."""

    def __init__(self, folders: Sequence[Path], settings: Settings | None, most_viewers: int | None = None) -> None:
        self._settings = settings
        self._files = _static_files()
        self._notices = Notices(asyncio.get_running_loop())
        self._audience = Audience(most_viewers) if most_viewers is not None else Audience()
        self._overview = Overview(folders, settings, self._notices)
        self._open: dict[str, Broadcast] = {}
        self._followed: dict[str, Followed] = {}
        self._opening = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._app = Starlette(routes=self._routes())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        self._overview.close()
        for broadcast in self._open.values():
            broadcast.stop()
        if self._reading:
            self._reading.cancel()
        async with self._opening:  # one that is being read is finished first
            for name in list(self._followed):
                await asyncio.to_thread(self._followed.pop(name).close)
        self._notices.close()

    def _routes(self) -> list[Route]:
        one = "/api/campaign/{id}"
        return [
            Route("/", self._index),
            Route("/static/{name}", self._file),
            Route("/api/campaigns", self._campaigns),
            Route("/api/updates", self._overview_updates),
            Route(f"{one}/updates", self._updates),
            Route(one, self._about(_campaign)),
            Route(f"{one}/board", self._about(_board)),
            Route(f"{one}/rows", self._about(lambda it, asked: pages.rows(it, _names(asked, "nodes")))),
            Route(f"{one}/search", self._about(_search)),
            Route(f"{one}/view/{{name}}", self._about(_view)),
            Route(
                f"{one}/node/{{node}}", self._about(lambda it, asked: pages.node_page(it, asked.path_params["node"]))
            ),
            Route(f"{one}/compare", self._about(lambda it, asked: pages.compare(it, _names(asked, "nodes")))),
            Route(f"{one}/parameters", self._about(_parameters)),
            Route(f"{one}/diff", self._about(_diff)),
            Route(f"{one}/text", self._about(_text)),
            Route(f"{one}/live", self._about(lambda it, _: it.live())),
            Route(f"{one}/chain", self._about(lambda it, _: it.run(Followed.walk))),
        ]

    async def _index(self, _: Request) -> Response:
        return Response(self._files["index.html"], media_type="text/html")

    async def _file(self, request: Request) -> Response:
        """One of those that were there at the start: no path is made of what was asked for."""
        name = request.path_params["name"]
        if name not in self._files:
            return _answer(request, {"error": "there is no such file"}, 404)
        kind = _TYPES[Path(name).suffix]
        return _packed(request, self._files[name], kind)

    async def _campaigns(self, request: Request) -> Response:
        rows = await self._overview.rows()
        if rows and not self._followed and rows[0]["status"] != "not readable":
            # Most likely the next to be looked at; a long one takes a moment to read.
            self._reading = asyncio.create_task(self._read_ahead(rows[0]["id"]))
        return _answer(request, rows)

    async def _read_ahead(self, name: str) -> None:
        with contextlib.suppress(NotThere, *UNREADABLE):
            await self._get(name)

    async def _get(self, name: str) -> tuple[Followed, Broadcast]:
        """The campaign of this id, read when it is first asked for. Raises NotThere and LedgerErrors."""
        found = await self._overview.found(name)
        if found is None:
            raise NotThere("there is no such campaign")
        async with self._opening:
            if name not in self._followed:
                await self._give_way()
                self._followed[name] = await asyncio.to_thread(Followed, found, self._settings)
                self._open[name] = Broadcast(self._followed[name], self._notices)
            self._followed[name] = self._followed.pop(name)  # the one asked for last stands last
            return self._followed[name], self._open[name]

    async def _give_way(self) -> None:
        unseen = [name for name in self._followed if not self._open[name].viewers]
        for name in unseen[: max(0, len(self._followed) - MOST_OPEN + 1)]:
            self._open.pop(name).stop()
            await asyncio.to_thread(self._followed.pop(name).close)

    def _about(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                followed, broadcast = await self._get(request.path_params["id"])
                return await asyncio.to_thread(_worked, followed, work, request, broadcast.is_up_to_date)
            except (NotThere, Missing) as error:
                return _answer(request, {"error": printable(str(error))}, 404)
            except Exception as error:
                if not isinstance(error, UNREADABLE):
                    raise
                return _answer(request, {"error": short(str(error), 500)}, 503)

        return answer

    async def _updates(self, request: Request) -> Response:
        try:
            followed, broadcast = await self._get(request.path_params["id"])
            after = request.headers.get("last-event-id") or request.query_params.get("after")
            known = _number(after) if after else -1
        except (NotThere, Missing) as error:
            return _answer(request, {"error": printable(str(error))}, 404)
        except UNREADABLE as error:
            return _answer(request, {"error": short(str(error), 500)}, 503)

        async def messages() -> AsyncIterator[bytes]:
            with self._audience.seat() as viewer:
                broadcast.join(viewer)
                try:
                    for message in await asyncio.to_thread(followed.run, lambda it: _missed(it, known)):
                        yield message
                    async for message in viewer.messages():
                        yield message
                finally:
                    broadcast.leave(viewer)

        return self._streamed(request, messages)

    async def _overview_updates(self, request: Request) -> Response:
        async def messages() -> AsyncIterator[bytes]:
            with self._audience.seat() as viewer:
                self._overview.join(viewer)
                try:
                    async for message in viewer.messages():
                        yield message
                finally:
                    self._overview.leave(viewer)

        return self._streamed(request, messages)

    def _streamed(self, request: Request, messages: Callable[[], AsyncIterator[bytes]]) -> Response:
        if self._audience.count >= self._audience.most:
            told = f"{self._audience.most} viewers are connected, which is the most that this server takes"
            return _answer(request, {"error": told}, 503, {"retry-after": "30"})

        async def safe() -> AsyncIterator[bytes]:
            with contextlib.suppress(TooMany):
                async for message in messages():
                    yield message

        return StreamingResponse(safe(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _worked(followed: Followed, work: Work, request: Request, is_up_to_date: bool) -> Response:
    if not is_up_to_date:
        followed.run(Followed.poll)  # nobody follows it, or cannot, so it is as old as the last look
    return _answer(request, work(followed, request))


def _missed(it: Followed, after: int) -> list[bytes]:
    updates = it.since(after)
    if updates is None:
        return [written("again", {}, it.seq)]
    return [written("update", update, update["seq"]) for update in updates]


def _campaign(it: Followed, _: Request) -> dict[str, Any]:
    return it.run(lambda it: {**it.summary(), "said": list(it.said)})


def _board(it: Followed, request: Request) -> dict[str, Any]:
    run = it.run_numbered(_run(request))
    return it.run(lambda it: {**it.board_of(run).whole(), "seq": it.seq, "present": run.number == it.board.run})


def _search(it: Followed, request: Request) -> dict[str, Any]:
    text, number = request.query_params.get("text", "")[:200], _run(request)
    return it.run(lambda it: pages.search(it, text, number))


def _view(it: Followed, request: Request) -> dict[str, Any]:
    return it.views.made((request.path_params["name"], _run(request)), it.seq, lambda key: pages.view(it, *key))


def _parameters(it: Followed, request: Request) -> dict[str, Any]:
    return it.views.made(("parameters", _run(request)), it.seq, lambda key: pages.parameters(it, key[1]))


def _diff(it: Followed, request: Request) -> dict[str, Any]:
    asked = request.query_params
    return texts.diff_page(it, asked.get("node", ""), asked.get("from") or None, _number(asked.get("page", "0")))


def _text(it: Followed, request: Request) -> dict[str, Any]:
    asked = request.query_params
    start = _number(asked.get("start", "0"))
    return texts.log_page(it, asked.get("what", ""), asked.get("name", ""), start, last="last" in asked)


def _names(request: Request, key: str) -> list[str]:
    return [name for name in request.query_params.get(key, "").split(",") if name]


def _run(request: Request) -> int | None:
    text = request.query_params.get("run")
    return None if not text else _number(text)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise NotThere("that is not a number")
    return int(text)


def _answer(request: Request, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return _packed(request, text.encode(), "application/json", status, headers)


def _packed(
    request: Request, body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    packed = len(body) > _SMALL and "gzip" in request.headers.get("accept-encoding", "")
    more = {"content-encoding": "gzip", "vary": "accept-encoding"} if packed else {}
    # Quick rather than small: it goes over loopback, or through ssh.
    data = gzip.compress(body, 1) if packed else body
    return Response(data, status, headers={**(headers or {}), **more}, media_type=kind)


def _static_files() -> dict[str, bytes]:
    folder = resources.files(__package__) / "static"
    return {it.name: it.read_bytes() for it in folder.iterdir() if Path(it.name).suffix in _TYPES}
