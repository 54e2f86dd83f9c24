"""The metering gateway: an application that speaks the Messages API, and lines into it with an allowance each.

It alone has the provider. The holder of a line's token may use what the line was given, and every call is reserved at
its worst case, put on record before it is forwarded, counted as it streams, and booked exactly once.
"""

import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from orchestrator.llm import tools
from orchestrator.llm.allowance import Allowance, Ear
from orchestrator.llm.exchange import Exchange, Reply, tell_declined
from orchestrator.llm.line import App, Line
from orchestrator.llm.open_line import OpenLine, note_refusal
from orchestrator.llm.prices import Prices
from orchestrator.llm.refusal import Refused
from orchestrator.llm.screening import SMALL, Asked, screened
from orchestrator.llm.standing import Standing
from orchestrator.llm.upstream import AGAIN, Declined, NotAnswered, Upstream
from orchestrator.offload import offload

LARGEST_BODY = 8 << 20
# How a question is asked, in this API and in others.
_QUESTIONS = ("/messages", "/responses", "/completions", "/complete", "/converse", "/invoke", ":generateContent")


class Gateway:
    def __init__(self, upstream: Upstream, prices: Prices, clock: Callable[[], float] = time.monotonic) -> None:
        self._upstream = upstream
        self._prices = prices
        self._clock = clock
        self._lines: dict[bytes, OpenLine] = {}
        self._standing = Standing()
        routes = [
            Route("/v1/messages", _Posted(self._message)),
            Route("/v1/messages/count_tokens", _Posted(self._count)),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name}", self._model, methods=["GET"]),
        ]
        handlers = {404: _not_found, 405: _not_found, Refused: _told}
        self.app: App = Starlette(routes=routes, exception_handlers=handlers)

    @property
    def unusable(self) -> str | None:
        """Why the provider takes nothing from us, once it said so. One line for a person."""
        return self._standing.unusable

    async def answers(self, model: str) -> bool:
        """Whether the provider is there: it is asked to count a word, which costs nothing. A refusal is an answer."""
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": "there?"}]})
        try:
            path, headers = "/v1/messages/count_tokens", {"anthropic-version": "2023-06-01"}
            answering = await self._upstream.post(path, headers, body.encode(), _nothing, _nothing)
        except Declined as declined:
            return declined.status < 500 and declined.status not in AGAIN
        except NotAnswered:
            return False
        await answering.close()
        return True

    @asynccontextmanager
    async def open_line(self, allowance: Allowance, ear: Ear) -> AsyncIterator[Line]:
        """Raises UnknownModel. Leaving it ends what is in flight, and the token is worth nothing from then on."""
        for model in allowance.models:
            self._prices.of(model)
        token = f"sk-ant-line-{secrets.token_urlsafe(32)}"
        line = OpenLine(self.app, token, allowance, ear, self._clock, self._prices, self._standing)
        self._lines[_digest(token)] = line
        try:
            yield line
        finally:
            self._lines.pop(_digest(token), None)
            await line.close()

    async def close(self) -> None:
        for line in list(self._lines.values()):
            await line.close()
        self._lines.clear()
        await self._upstream.close()

    async def __aenter__(self) -> "Gateway":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _message(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        headers = Headers(scope=scope)
        line = self._admitted(headers, counting=False)

        async def work(raw: bytes) -> None:
            asked, answers = await self._read(line, raw)
            line.hear_answers(answers)
            exchange = Exchange(self._upstream, line, headers, scope["query_string"])
            try:
                await exchange.message(await exchange.bounded(asked), reply)
            except Declined as declined:
                self._standing.declined(declined, asked.model)
                await tell_declined(declined, reply)

        await _with_body(line, receive, work)

    async def _count(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        headers = Headers(scope=scope)
        line = self._admitted(headers, counting=True)

        async def work(raw: bytes) -> None:
            asked, _ = await self._read(line, raw, counting=True)
            try:
                body = await Exchange(self._upstream, line, headers, scope["query_string"]).count(asked.body)
            except Declined as declined:
                # Says nothing of messages: many providers have no such address.
                await tell_declined(declined, reply)
            else:
                await reply.whole(200, {"content-type": "application/json"}, body)

        await _with_body(line, receive, work)

    async def _read(self, line: OpenLine, raw: bytes, *, counting: bool = False) -> tuple[Asked, list[tuple[str, str]]]:
        """What is asked, and what tools answered meanwhile."""

        def reading() -> tuple[Asked, list[tuple[str, str]]]:
            with _fault_of_the_request():
                asked = screened(raw, line.allowance.models, self._prices, counting=counting)
                return asked, [] if counting else list(tools.answered(asked.fields.get("messages")))

        return reading() if len(raw) < SMALL else await offload(reading)

    async def _models(self, request: Request) -> Response:
        models = [_model(name) for name in self._line_of(request.headers).models]
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return JSONResponse({"data": models, "has_more": False, **ends})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._line_of(request.headers).models:
            raise Refused(404, f"model: {name[:80]!r} is not in this allowance")
        return JSONResponse(_model(name))

    def _admitted(self, headers: Mapping[str, str], *, counting: bool) -> OpenLine:
        line = self._line_of(headers)
        if (why := self._standing.unusable) is not None:
            raise Refused(401, why)
        if headers.get("content-encoding", "identity") != "identity":
            raise Refused(400, "the body must not be encoded")
        line.admit(counting=counting)
        return line

    def _line_of(self, headers: Mapping[str, str]) -> OpenLine:
        bearer = headers.get("authorization", "")
        told = headers.get("x-api-key") or (bearer[7:] if bearer[:7].lower() == "bearer " else "")
        line = self._lines.get(_digest(told))
        if line is None:
            change = "set the agent up to send the token that it finds in ANTHROPIC_API_KEY as its key"
            raise Refused(401, "invalid x-api-key", change=change, always=True)
        line.check()
        return line


class _Posted:
    """A handler that sends its answer itself, piece by piece."""

    def __init__(self, handler: Callable[[Scope, Receive, Reply], Awaitable[None]]) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(send)
        try:
            if scope["method"] != "POST":
                raise Refused(404, "only POST is offered here")
            await self._handler(scope, receive, reply)
        except Refused as refused:
            note_refusal(scope, refused)
            if not reply.started:
                await reply.refuse(refused)


@contextmanager
def _fault_of_the_request() -> Iterator[None]:
    """Whatever goes wrong while a request is looked at: the one who wrote it is told, and nobody else is to blame."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        structlog.get_logger().warning("gateway.not_readable", error=repr(error)[:300])
        raise Refused(400, "the request cannot be read") from error


async def _with_body(line: OpenLine, receive: Receive, work: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
    """The body, up to a cap for one and one for all of a line, for as long as it is worked on."""
    parts: list[bytes] = []
    size = 0
    try:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            part = message.get("body", b"")
            line.hold_bytes(len(part))
            size += len(part)
            if size > LARGEST_BODY:
                raise Refused(413, f"the request has more than {LARGEST_BODY >> 20} MiB")
            parts.append(part)
            more = message.get("more_body", False)
        await line.unless_gone(receive, work(b"".join(parts)))
    finally:
        line.release_bytes(size)


def _digest(token: str) -> bytes:
    """Tokens are looked up by digest, so that how long a look-up takes says nothing about them."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _nothing() -> None:
    pass


def _model(name: str) -> dict[str, str]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def _response(refused: Refused) -> Response:
    return Response(refused.body(), refused.status, refused.headers, "application/json")


async def _told(request: Request, error: Exception) -> Response:
    refused = error if isinstance(error, Refused) else Refused(500, "the gateway failed")
    note_refusal(request.scope, refused)
    return _response(refused)


async def _not_found(request: Request, _: Exception) -> Response:
    refused = _no_such(request.method, request.url.path[:80])
    note_refusal(request.scope, refused)
    return _response(refused)


def _no_such(method: str, path: str) -> Refused:
    """An agent may look for much that is not here; one that asks its questions elsewhere never gets an answer."""
    why = f"{path}: not offered here"
    if method != "POST" or not path.endswith(_QUESTIONS):
        return Refused(404, why)
    if path.endswith("/messages"):
        change = "set the agent's base URL so that it asks at /v1/messages"
    else:
        change = "set the agent up for Anthropic's Messages API (/v1/messages), the only one there is, or use another"
    return Refused(404, why, change=change, always=True)
