"""Campaigns on disk, a server that is asked without a network, and a real browser."""

import asyncio
import contextlib
import json
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from orchestrator.domain import events as e
from orchestrator.ledger import Entry, Ledger, canonical
from orchestrator.views.page.columns import KIND, unpacked
from orchestrator.views.page.entrance import Entrance
from orchestrator.views.page.finding import find_campaigns
from orchestrator.views.page.followed import Followed
from orchestrator.views.page.guard import Guard
from orchestrator.views.page.listening import Certificate, Listening
from orchestrator.views.page.running import serving
from orchestrator.views.page.server import Server
from tests.orchestrator.views.campaign.conftest import Stage

TOKEN = "a token of a test"
CONTROL = "a token that acts"
PLACE = "the-place-of-a-test"
PORT = 8420
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"


@pytest.fixture(autouse=True)
def _files(on_disk: None, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A server reads ledgers from threads of its own, waits for their files to change, and keeps boards. That a machine
    is busy is no reason to leave a campaign out.
    """
    monkeypatch.setattr("orchestrator.views.page.overview.ANSWER_S", 120.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def grow(stage: Stage, written: int) -> None:
    """Append what the story told since, with the rows that it changed, as an orchestrator does."""
    rows: dict[tuple[str, str], str | None] = {key: stage.story.state.row(key) for key in stage.story.state.touched}
    rows["accounts", "books"] = json.dumps(stage.story.accounts.as_rows())
    with Ledger.open(stage.campaign / "ledger.sqlite3") as ledger:
        ledger.seize("another test")
        *first, (last_at, last) = stage.story.events[written:]
        for at, event in first:
            ledger.append([_entry(event)], {}, at)
        ledger.append([_entry(last)], rows, last_at)


def _entry(event: e.Event) -> Entry:
    return Entry(event.kind, canonical(event.model_dump(mode="json")))


def followed(stage: Stage) -> Followed:
    stage.write()
    (found,) = find_campaigns([stage.folder]).values()
    return Followed(found, None)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return unpacked(self.body) if self.headers["content-type"] == KIND else json.loads(self.body)


Headers = list[tuple[str, str]]
App = Callable[..., Awaitable[None]]


def _scope(method: str, target: str, headers: Headers) -> dict[str, Any]:
    """As uvicorn has it. What the page asks for is below its place."""
    path, _, query = target.partition("?")
    path = f"/{PLACE}{path}" if path.startswith(("/api", "/static")) else path
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "http_version": "1.1",
        "root_path": "",
        "scheme": "http",
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 4711),
    }


async def asked(
    app: App, target: str, *, method: str = "GET", headers: Headers | None = None, body: bytes = b""
) -> Answer:
    """One request, and its answer."""
    scope = _scope(method, target, [("host", HOST)] if headers is None else headers)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if sent:
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    found = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, b"".join(it.get("body", b"") for it in sent[1:]))


async def cookie_of(app: App, token: str = TOKEN) -> Headers:
    """What a browser sends after it opened the address with the token."""
    answer = await asked(app, f"/?token={quote(token)}")
    assert (answer.status, answer.headers["location"]) == (303, f"/{PLACE}/")
    return [("host", HOST), ("cookie", answer.headers["set-cookie"].partition(";")[0])]


class Site:
    """A server without a network, and one who is let in."""

    def __init__(self, *folders: Path, most_viewers: int | None = None, control: bool = False) -> None:
        self.server = Server(folders, None, most_viewers, control=control)
        self.entrance = Entrance(TOKEN, CONTROL if control else "", PLACE)
        self.app = Guard(self.server, self.entrance, PORT)
        self._token = CONTROL if control else TOKEN

    async def __aenter__(self) -> "Site":
        self.headers = await cookie_of(self.app, self._token)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    async def get(self, target: str, code: int = 200) -> Any:
        answer = await asked(self.app, target, headers=self.headers)
        assert answer.status == code, answer.body
        return answer.json()

    async def enter(self, token: str = TOKEN) -> Headers:
        """Another browser."""
        return await cookie_of(self.app, token)

    async def at(self, target: str = "") -> str:
        """An address of the one campaign that there is."""
        (row,) = await self.get("/api/campaigns")
        return f"/api/campaign/{row['id']}{target}"

    async def campaign(self, target: str = "", code: int = 200) -> Any:
        return await self.get(await self.at(target), code)


class Stream:
    """One that listens: what it is sent, message by message. `over` is done when its stream has ended."""

    def __init__(self, site: Site, target: str, headers: Headers | None = None) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self._left = asyncio.Event()
        self.over = asyncio.create_task(self._listen(site, target, headers or site.headers))

    async def _listen(self, site: Site, target: str, headers: Headers) -> None:
        scope = _scope("GET", target, headers)
        first = True

        async def receive() -> MutableMapping[str, Any]:
            nonlocal first
            if first:
                first = False
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._left.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message.get("body"):
                self.sent.put_nowait(message["body"])

        await site.app(scope, receive, send)

    async def next(self, kind: str) -> str:
        async with asyncio.timeout(60):
            while True:
                text = (await self.sent.get()).decode()
                if f"event: {kind}\n" in text:
                    return text

    async def until(self, kind: str, text: str) -> None:
        """What is told before it may have been read in the middle of what is written."""
        while text not in await self.next(kind):
            pass

    async def leave(self) -> None:
        self._left.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self.over


class Served:
    """A real server on a port of its own, in a thread. Its address takes a token, and leads on to its place."""

    def __init__(self, *folders: Path, control: bool = False, certificate: Certificate | None = None) -> None:
        self._listening = Listening(socket.create_server(("127.0.0.1", 0)), certificate=certificate)
        self.entrance = Entrance(TOKEN, CONTROL if control else "", PLACE)
        self.port, self.address = self._listening.port, self._listening.address
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(folders)))
        self._thread.start()
        self._ready.wait(60)

    async def _serve(self, folders: tuple[Path, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        make: Callable[..., Any] = serving
        self._running = make(folders, None, self._listening, self.entrance)
        self._running.capture_signals = contextlib.nullcontext  # signals are for the main thread
        self._ready.set()
        await self._running.serve(sockets=[self._listening.socket])

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._running.handle_exit, signal.SIGTERM, None)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server does not end"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(*folders: Path, **given: Any) -> Served:
        made.append(Served(*(folders or (tmp_path,)), **given))
        return made[-1]

    yield start
    for one in made:
        one.close()
