"""The orchestrator's own calls: the genuine client, through the same gateway as everybody, in this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import structlog

from orchestrator.domain.model_use import Tokens
from orchestrator.llm import asgi
from orchestrator.llm.line import Answer, App, Line, NoAnswer, Unusable
from orchestrator.text import short
from orchestrator.watch.signals import Hold, Kind, Signal

if TYPE_CHECKING:
    from orchestrator.llm.open_line import OpenLine

_log = structlog.get_logger()
_MOST_BREAKPOINTS = 4
_LEAST_BUDGET = 1024


async def ask(
    line: "OpenLine",
    system: Sequence[str],
    messages: Sequence[Mapping[str, Any]],
    max_tokens: int,
    model: str,
    thinking: int | None,
    temperature: float | None = None,
) -> Answer:
    """Raises NoAnswer and Unusable."""
    asked: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "messages": list(messages)}
    if system:
        asked["system"] = _system(system)
    if temperature is not None:  # the client has no name for it, since not every model takes one
        asked["extra_body"] = {"temperature": temperature}
    if thinking is not None and (way := line.prices.of(model).thinking) != "none":
        budget = {"type": "enabled", "budget_tokens": max(_LEAST_BUDGET, thinking)}
        asked["thinking"] = {"type": "adaptive"} if way == "adaptive" else budget
    async with client_of(line) as client:
        while True:
            try:
                return _answer(await _streamed(client, asked))
            except anthropic.APIStatusError as error:
                if why := line.standing.unusable:
                    raise Unusable(why) from None
                if line.barred:
                    raise NoAnswer(short(str(line.barred), 300), charged=False) from None
                wait = _own_limit(error)
                if wait is None:
                    raise _no_answer(error) from None
                await _wait_our_turn(line, wait)
            except Exception as error:  # noqa: BLE001  what a provider sent can break the client in any way
                _log.warning("no answer could be read", model=model, exc_info=True)
                raise NoAnswer(f"no answer came ({type(error).__name__})", charged=False) from None


async def _wait_our_turn(line: "OpenLine", seconds: float) -> None:
    """The limit is ours: the watch is told that nothing is to be expected."""
    line.ear.heard(Signal(line.clock(), Kind.HELD, hold=Hold.QUEUED))
    try:
        await asyncio.sleep(seconds)
    finally:
        line.ear.heard(Signal(line.clock(), Kind.RELEASED, hold=Hold.QUEUED))


def client_of(line: Line) -> anthropic.AsyncAnthropic:
    transport = _InProcess(line.app)
    http = httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False)
    return anthropic.AsyncAnthropic(
        api_key=line.token, auth_token=None, base_url="http://gateway", http_client=http, max_retries=0
    )


async def _streamed(client: anthropic.AsyncAnthropic, asked: dict[str, Any]) -> anthropic.types.Message:
    async with client.messages.stream(**asked) as stream:
        return await stream.get_final_message()


def _system(parts: Sequence[str]) -> list[dict[str, Any]]:
    """All parts but the last are stable: a request that begins like an earlier one is read from the cache."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": part} for part in parts]
    for block in blocks[:-1][-_MOST_BREAKPOINTS:]:
        block["cache_control"] = {"type": "ephemeral"}
    return blocks


def _answer(message: anthropic.types.Message) -> Answer:
    usage = message.usage
    tokens = Tokens(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
    )
    text = "".join(block.text for block in message.content if block.type == "text")
    return Answer(text, message.model, message.stop_reason or "", tokens)


def _own_limit(error: anthropic.APIStatusError) -> float | None:
    """How long to wait where it is our own limit on requests a minute that says no."""
    wait = error.response.headers.get("x-blastdoor-wait")
    return float(wait) if wait is not None else None


def _no_answer(error: anthropic.APIStatusError) -> NoAnswer:
    """Whose fault it is decides who pays: what the request itself brought about is charged, the provider's is not."""
    status = error.status_code
    body = error.body if isinstance(error.body, dict) else {}
    detail = body.get("error")
    told = detail.get("message") if isinstance(detail, dict) else None
    ours = 400 <= status < 500 and status not in (408, 409, 425, 429)
    return NoAnswer(short(str(told or f"the provider answered with status {status}"), 300), charged=ours)


class _InProcess(httpx2.AsyncBaseTransport):
    """Hands requests to the application, and gives its answers piece by piece."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        stack = AsyncExitStack()
        url, headers, body = request.url, dict(request.headers), await request.aread()
        try:
            answered = await stack.enter_async_context(
                asgi.asked(self._app, request.method, url.path, headers, body, url.query.decode())
            )
        except asgi.CutShort as error:
            raise httpx2.RemoteProtocolError(str(error), request=request) from None
        return httpx2.Response(answered.status, headers=list(answered.headers), stream=_Pieces(answered, stack))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, answered: asgi.Answered, stack: AsyncExitStack) -> None:
        self._answered = answered
        self._stack = stack

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._answered.chunks:
                yield piece
        except asgi.CutShort as error:
            raise httpx2.RemoteProtocolError(str(error)) from None

    async def aclose(self) -> None:
        await self._stack.aclose()
