"""One request for a message, from the caller to the provider and back."""

import json
from collections.abc import Awaitable, Callable, Mapping

from orchestrator.llm.calls import Fate, OpenCall, opened
from orchestrator.llm.line import Message
from orchestrator.llm.open_line import OpenLine
from orchestrator.llm.refusal import FINAL, Refused
from orchestrator.llm.screening import Asked
from orchestrator.llm.standing import error_of
from orchestrator.llm.upstream import AGAIN, Answering, Declined, Unknown, Unreachable, Upstream
from orchestrator.llm.whole import Whole

# A try whose fate is not known is booked at its worst case; so many calls in a row may go that way.
_CALLS = 3
_ASKED = ("anthropic-version", "anthropic-beta")
_ANSWERED = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry", "cache-control")


class Reply:
    """What the caller is told. `started` from the first byte on: after it, nothing is tried again."""

    def __init__(self, send: Callable[[Message], Awaitable[None]]) -> None:
        self._send = send
        self.started = False

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.started = True
        pairs = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def piece(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        await self.head(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, refused: Refused) -> None:
        await self.whole(refused.status, {**refused.headers, "content-type": "application/json"}, refused.body())


class Exchange:
    def __init__(self, upstream: Upstream, line: OpenLine, headers: Mapping[str, str], query: bytes) -> None:
        self._upstream = upstream
        self._line = line
        self._headers = {name: headers[name] for name in _ASKED if name in headers}
        self._headers.setdefault("anthropic-version", "2023-06-01")
        self._suffix = "?beta=true" if query == b"beta=true" else ""

    async def message(self, asked: Asked, reply: Reply) -> None:
        """Raises Refused and Declined, both before anything was passed on. The line counts what the provider did."""
        for last in (number == _CALLS - 1 for number in range(_CALLS)):
            try:
                async with opened(asked, self._line) as call:
                    whole = await self._forwarded(call, reply)
            except Declined as declined:
                self._line.faults += declined.status >= 500 or declined.status in AGAIN
                raise
            except Unknown as fault:
                self._line.faults += 1
                if reply.started:
                    return
                if fault.late or last:
                    raise Refused(504 if fault.late else 502, str(fault), {}) from None
                self._line.check()
                continue
            except Unreachable as fault:
                self._line.faults += 1
                raise Refused(502, str(fault), {}) from None
            if whole is not None:
                await reply.whole(200, whole[0], whole[1])
            else:
                await reply.end()
            return

    async def bounded(self, asked: Asked) -> Asked:
        """With a bound for its input where the bytes of a document are none. Raises Refused and Declined."""
        if not asked.unbounded:
            return asked
        try:
            tokens = json.loads(await self.count(asked.to_count))["input_tokens"]
        except Refused:
            self._line.faults += 1
            raise
        except Declined as declined:
            if declined.status in AGAIN:
                self._line.faults += 1
                raise
            said = (error_of(declined.body) or {}).get("message", declined)
            raise Refused(400, f"the provider did not count the document: {said}") from None
        except (ValueError, LookupError, TypeError, RecursionError):
            tokens = None
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise Refused(502, "the provider's count cannot be read", {})
        return asked.counted(tokens)

    async def count(self, body: bytes) -> bytes:
        """What the provider answers. Raises Refused and Declined."""
        path = "/v1/messages/count_tokens" + self._suffix
        try:
            answering = await self._upstream.post(path, self._headers, body, _nothing, _nothing)
        except (Unknown, Unreachable) as fault:
            raise Refused(502, str(fault), {}) from None
        try:
            counted = bytearray()
            async for chunk in answering.chunks():
                counted += chunk
                if len(counted) > 1 << 20:
                    raise Refused(502, "the provider's count cannot be read", {})
        except Unknown as fault:
            raise Refused(502, str(fault), {}) from None
        finally:
            await answering.close()
        return bytes(counted)

    async def _forwarded(self, call: OpenCall, reply: Reply) -> tuple[dict[str, str], bytes] | None:
        path = "/v1/messages" + self._suffix
        try:
            answering = await self._upstream.post(path, self._headers, call.asked.body, call.waits, call.sent)
        except (Declined, Unreachable):
            call.fate = Fate.DECLINED
            raise
        try:
            if not call.asked.stream:
                return await self._assembled(call, answering)
            async for chunk in answering.chunks():
                call.hear(chunk)
                if not reply.started:
                    await reply.head(200, passed_on(answering.headers))
                await reply.piece(chunk)
            if not reply.started:
                raise Unknown("the provider's answer was empty")
        finally:
            self._line.answers += call.meter.started
            self._line.faults += call.meter.error is not None
            await answering.close()
        return None

    async def _assembled(self, call: OpenCall, answering: Answering) -> tuple[dict[str, str], bytes]:
        whole = Whole()
        async for chunk in answering.chunks():
            whole.add(call.hear(chunk), len(chunk))
        headers = passed_on(answering.headers) | {"content-type": "application/json"}
        return headers, whole.message()


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """What concerns the caller; nothing of the connection, and nothing that says whose key it is."""
    limits = (name for name in headers if name.lower().startswith("anthropic-ratelimit-"))
    return {name.lower(): headers[name] for name in (*_ANSWERED, *limits) if name in headers}


async def tell_declined(declined: Declined, reply: Reply) -> None:
    """In the provider's own words, where they have the API's form."""
    headers = passed_on(declined.headers) | {"content-type": "application/json"}
    if declined.status in (401, 402, 403):
        headers |= FINAL
    if 400 <= declined.status < 600 and error_of(declined.body):
        await reply.whole(declined.status, headers, declined.body)
        return
    status = declined.status if 400 <= declined.status < 600 else 502
    kind = "api_error" if status >= 500 else "invalid_request_error"
    await reply.refuse(Refused(status, f"{declined}, without an error in the API's form", headers, kind))


def _nothing() -> None:
    pass
