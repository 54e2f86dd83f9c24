"""What the page asks for, and the answers: all of it reading, each answer bounded."""

import asyncio
import contextlib
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from orchestrator.ledger import Missing
from orchestrator.settings import Settings
from orchestrator.text import printable, short
from orchestrator.views.page import columns, pages, texts
from orchestrator.views.page.entrance import Session
from orchestrator.views.page.files import TYPES, packed_files, served_files
from orchestrator.views.page.followed import UNREADABLE, Followed, NotThere
from orchestrator.views.page.overview import Overview
from orchestrator.views.page.streams import MOST_VIEWERS, Audience, Broadcast, TooMany, Viewer, written
from orchestrator.views.page.waking import Notices

# Requests of those who look, and as many of those who act: so many are answered at a time, and so many may wait. Some
# threads are always left for the server's own reading.
_ANSWERED = 8
_ASKED = 64
# Of these, how many may wait for one campaign, which may be one that does not answer.
WAITING = 8
_THREADS = 32
# Campaigns that are kept in memory; one that nobody looks at gives way to the next.
MOST_OPEN = 6
_SMALL = 1400
_CLOSE_S = 5.0
_GZIP = {"content-encoding": "gzip", "vary": "accept-encoding"}

Work = Callable[[Followed, Request], Any]


class Crowded(Exception):
    """As many wait for one campaign as may."""


class Server:
    """Made in the event loop that it serves in; `close` ends every stream."""

    def __init__(
        self,
        folders: Sequence[Path],
        settings: Settings | None,
        most_viewers: int | None = None,
        *,
        control: bool = False,
    ) -> None:
        self._settings = settings
        self._control = control
        self._files = served_files()
        self._small = packed_files(self._files)
        self._notices = Notices(asyncio.get_running_loop())
        # Those who look, and those who act: neither takes the place of the other.
        self._audiences = {acts: Audience(most_viewers or MOST_VIEWERS) for acts in (False, True)}
        self._turns = {acts: asyncio.Semaphore(_ANSWERED) for acts in (False, True)}
        self._alone = WeakValueDictionary[tuple[bool, str], asyncio.Lock]()
        self._asking = {False: 0, True: 0}
        self._waiting = Counter[tuple[bool, str]]()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "page"))
        self._overview = Overview(folders, settings, self._notices)
        self._open: dict[str, Broadcast] = {}
        self._followed: dict[str, Followed] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._reading: asyncio.Task[None] | None = None
        self._is_over = False
        self._app = Starlette(routes=[*self._routes(), *self._acts()], exception_handlers={Crowded: _crowded})
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        acts = _may_act(scope)
        if self._asking[acts] >= _ASKED:
            told = "many requests wait already; ask again\n"
            answer = PlainTextResponse(told, 503, headers={"retry-after": "2", "connection": "close"})
            await answer(scope, receive, send)
            return
        self._asking[acts] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._asking[acts] -= 1

    @contextlib.asynccontextmanager
    async def _turn(self, request: Request, *, seated: bool = False) -> AsyncIterator[None]:
        """For work in threads. One who reads an answer slowly keeps no turn, and a campaign that does not answer keeps
        one of them. Raises Crowded where many wait for it, but for one who has a seat already.
        """
        acts, name = _may_act(request.scope), request.path_params.get("id", "")
        alone = self._alone.setdefault((acts, name), asyncio.Lock())
        if name and not seated and self._waiting[acts, name] >= WAITING:
            raise Crowded
        self._waiting[acts, name] += 1
        try:
            await alone.acquire()
        finally:
            self._waiting[acts, name] -= 1
            if not self._waiting[acts, name]:
                del self._waiting[acts, name]
        try:
            async with self._turns[acts]:
                yield
        finally:
            alone.release()

    async def close(self) -> None:
        self._is_over = True
        if self._control:
            self._acting.close()
        self._overview.close()
        for broadcast in self._open.values():
            broadcast.stop()
        if self._reading:
            self._reading.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):  # one that is being read is finished first
                for lock in list(self._opening.values()):
                    async with lock:
                        pass
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):  # a disk or a database may be away
                await asyncio.gather(*(asyncio.to_thread(it.close) for it in self._followed.values()))
        self._followed.clear()
        self._overview.end()
        self._notices.close()

    def _routes(self) -> list[Route]:
        one = "/api/campaign/{id}"
        return [
            Route("/", self._index),
            Route("/static/{name}", self._file),
            Route("/api/me", self._me),
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

    def _acts(self) -> list[Route]:
        """Without --control there are none."""
        if not self._control:
            return []
        # Loaded here: with it comes all that checks a change.
        from orchestrator.views.page.acting import Acting, possible

        self._acting = Acting(self._settings)
        one = "/api/campaign/{id}"
        return [
            Route(f"{one}/acts", self._about(lambda it, asked: possible(it, asked.query_params.get("node", "")))),
            Route(f"{one}/ask/{{kind}}", self._act, methods=["POST"]),
        ]

    async def _me(self, request: Request) -> Response:
        """Whether the page may act, and what it shows then with each act."""
        session: Session = request.scope["session"]
        return _answer(request, {"acts": session.acts, "key": session.key if session.acts else ""})

    async def _index(self, request: Request) -> Response:
        return self._told(request, "index.html")

    def _told(self, request: Request, name: str) -> Response:
        """One of the page's own files."""
        kind = TYPES[Path(name).suffix]
        if not _takes_gzip(request):
            return Response(self._files[name], media_type=kind)
        return Response(self._small[name], headers=_GZIP, media_type=kind)

    async def _file(self, request: Request) -> Response:
        """One of those that were there at the start: no path is made of what was asked for."""
        name = request.path_params["name"]
        if name not in self._files:
            return _answer(request, {"error": "there is no such file"}, 404)
        return self._told(request, name)

    async def _campaigns(self, request: Request) -> Response:
        async with self._turn(request):
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
        async with self._opening.setdefault(name, asyncio.Lock()):  # one that does not answer holds up no other
            if name not in self._followed:
                followed = None if self._is_over else await asyncio.to_thread(Followed, found, self._settings)
                if followed is None or self._is_over:
                    if followed:
                        await asyncio.to_thread(followed.close)
                    raise NotThere("the server ends")
                await self._give_way()
                self._followed[name], self._open[name] = followed, Broadcast(followed, self._notices)
            self._followed[name] = self._followed.pop(name)  # the one asked for last stands last
            return self._followed[name], self._open[name]

    async def _give_way(self) -> None:
        unseen = [name for name in self._followed if not self._open[name].viewers]
        for name in unseen[: max(0, len(self._followed) - MOST_OPEN + 1)]:
            if name not in self._open:  # another one gave it up meanwhile
                continue
            self._open.pop(name).stop()
            await asyncio.to_thread(self._followed.pop(name).close)

    def _about(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                async with self._turn(request):
                    followed, broadcast = await self._get(request.path_params["id"])
                    return await asyncio.to_thread(_worked, followed, work, request, broadcast.is_up_to_date)
            except (NotThere, Missing) as error:
                return _answer(request, {"error": printable(str(error))}, 404)
            except Exception as error:
                if not isinstance(error, UNREADABLE):
                    raise
                return _answer(request, {"error": short(str(error), 500)}, 503)

        return answer

    async def _act(self, request: Request) -> Response:
        async def get(name: str) -> Followed:
            followed, broadcast = await self._get(name)
            if not broadcast.is_up_to_date:
                await asyncio.to_thread(followed.run, Followed.poll)
            return followed

        try:
            status, told = await self._acting.post(request, get)
        except (NotThere, Missing) as error:
            return _answer(request, {"error": printable(str(error))}, 404)
        except UNREADABLE as error:
            return _answer(request, {"error": short(str(error), 500)}, 503)
        return _answer(request, told, status)

    async def _updates(self, request: Request) -> Response:
        try:
            async with self._turn(request):
                followed, broadcast = await self._get(request.path_params["id"])
            known = request.headers.get("last-event-id") or request.query_params.get("after", "")
        except (NotThere, Missing) as error:
            return _answer(request, {"error": printable(str(error))}, 404)
        except UNREADABLE as error:
            return _answer(request, {"error": short(str(error), 500)}, 503)

        async def messages(viewer: Viewer) -> AsyncIterator[bytes]:
            broadcast.join(viewer)
            try:
                async with self._turn(request, seated=True):
                    missed = await asyncio.to_thread(followed.run, lambda it: _missed(it, known))
                for message in missed:
                    yield message
                async for message in viewer.messages():
                    yield message
            finally:
                broadcast.leave(viewer)

        return self._streamed(request, messages)

    async def _overview_updates(self, request: Request) -> Response:
        async def messages(viewer: Viewer) -> AsyncIterator[bytes]:
            self._overview.join(viewer)
            try:
                async for message in viewer.messages():
                    yield message
            finally:
                self._overview.leave(viewer)

        return self._streamed(request, messages)

    def _streamed(self, request: Request, messages: Callable[[Viewer], AsyncIterator[bytes]]) -> Response:
        session: Session = request.scope["session"]
        audience = self._audiences[session.acts]
        viewer = Viewer(request.client.host if request.client else "", session.name)
        if not audience.has_room(viewer):
            told = f"{audience.most} viewers are connected, which is the most that this server takes"
            return _answer(request, {"error": told}, 503, {"retry-after": "30"})

        async def safe() -> AsyncIterator[bytes]:
            with contextlib.suppress(TooMany), audience.seat(viewer):
                self._asking[session.acts] -= 1  # from here on the seat counts
                try:
                    async for message in messages(viewer):
                        if session.is_over:
                            return
                        yield message
                finally:
                    self._asking[session.acts] += 1

        return StreamingResponse(safe(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _crowded(request: Request, _: Exception) -> Response:
    told = "many requests wait for this campaign already; ask again"
    return _answer(request, {"error": told}, 503, {"retry-after": "2"})


def _may_act(scope: Scope) -> bool:
    """The frame of the page is given to one who is nobody yet."""
    session: Session | None = scope["session"]
    return session is not None and session.acts


def _worked(followed: Followed, work: Work, request: Request, is_up_to_date: bool) -> Response:
    if not is_up_to_date:
        followed.run(Followed.poll)  # nobody follows it, or cannot, so it is as old as the last look
    made = work(followed, request)
    return _compressed(request, made) if isinstance(made, bytes) else _answer(request, made)


def _missed(it: Followed, after: str) -> list[bytes]:
    updates = it.since(after)
    if updates is None:
        return [written("again", it.start_again(), it.mark)]
    return [written("update", update, update["mark"]) for update in updates]


def _campaign(it: Followed, _: Request) -> dict[str, Any]:
    return it.run(lambda it: {**it.summary(), "said": list(it.said)})


def _board(it: Followed, request: Request) -> bytes:
    run = it.run_numbered(_run(request))
    return it.run(lambda it: it.packed_board(run))


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


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _answer(request: Request, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return _packed(request, text.encode(), "application/json", status, headers)


def _compressed(request: Request, body: bytes) -> Response:
    """One that is kept in the form that nearly all take."""
    if _takes_gzip(request):
        return Response(body, headers=_GZIP, media_type=columns.KIND)
    return Response(gzip.decompress(body), media_type=columns.KIND)


def _packed(
    request: Request, body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    packed = len(body) > _SMALL and _takes_gzip(request)
    more = _GZIP if packed else {}
    data = columns.compressed(body) if packed else body
    return Response(data, status, headers={**(headers or {}), **more}, media_type=kind)
