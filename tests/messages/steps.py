"""The steps of a script: an answer with its faults, a refusal in the API's form, or raw bytes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from tests.messages.blocks import Block, Event, Text, Tool
from tests.messages.stage import CutError, Recorded, Stage, event

SSE = {"content-type": "text/event-stream; charset=utf-8", "request-id": "req_test"}
JSON = {"content-type": "application/json", "request-id": "req_test"}


class Step(Protocol):
    async def play(self, request: Recorded, stage: Stage) -> None: ...


class Hang(StrEnum):
    HEADERS = "before the headers"
    FIRST = "after message_start, before the first token"
    MIDDLE = "in the middle of the deltas"


@dataclass(frozen=True)
class Reply:
    """One answer, streamed or not as the request wants it.

    `usage` is the last word of the stream, `usage_first` that of message_start; None is computed from the bytes, an
    empty mapping is left out. `piece` is how many characters a delta has, `pace_s` the wait before each delta,
    `first_s` that before the first. `pings` are sent before the first delta. `cut_after` so many events the
    connection is dropped; `error_after` so many an error event ends the stream.
    """

    blocks: Sequence[Block] = (Text("Hello."),)
    stop: str | None = None
    usage: Mapping[str, Any] | None = None
    usage_first: Mapping[str, Any] | None = None
    piece: int = 16
    pace_s: float = 0.0
    first_s: float = 0.0
    pings: int = 1
    hang: Hang | None = None
    cut_after: int | None = None
    error_after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    async def play(self, request: Recorded, stage: Stage) -> None:
        if self.hang is Hang.HEADERS:
            await stage.hang()
        if not request.body.get("stream"):
            await stage.pause(self.first_s)
            await stage.head(200, JSON | dict(self.headers))
            await stage.body(json.dumps(self.message(request)).encode(), more=False)
            return
        await stage.head(200, SSE | dict(self.headers))
        await self._stream(request, stage)
        await stage.body(b"", more=False)

    async def _stream(self, request: Recorded, stage: Stage) -> None:
        events = list(self.events(request))
        deltas = [at for at, one in enumerate(events) if one["type"] == "content_block_delta"]
        middle = deltas[len(deltas) // 2] if deltas else len(events) - 1
        for at, one in enumerate(events):
            if at == self.cut_after:
                raise CutError
            if at == self.error_after:
                await stage.body(event(_error("overloaded_error", "Overloaded")), more=True)
                return
            if (self.hang is Hang.FIRST and at == min(deltas, default=1)) or (
                self.hang is Hang.MIDDLE and at == middle
            ):
                await stage.hang()
            if at in deltas:
                await stage.pause(self.first_s if at == deltas[0] else self.pace_s)
            await stage.body(event(one), more=True)
            request.events.append(one["type"])
        if self.cut_after is not None and self.cut_after >= len(events):
            raise CutError

    def events(self, request: Recorded) -> Iterator[Event]:
        message = self.message(request) | {"content": [], "stop_reason": None, "stop_sequence": None}
        message["usage"] = dict(self._first_usage(request))
        yield {"type": "message_start", "message": {name: it for name, it in message.items() if name != "usage" or it}}
        yield from ({"type": "ping"} for _ in range(self.pings))
        for index, block in enumerate(self.blocks):
            yield {"type": "content_block_start", "index": index, "content_block": block.opening()}
            for delta in block.deltas(self.piece):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        last: Event = {"type": "message_delta", "delta": {"stop_reason": self._stop(), "stop_sequence": None}}
        if usage := self._last_usage(request):
            last["usage"] = dict(usage)
        yield last
        yield {"type": "message_stop"}

    def message(self, request: Recorded) -> Event:
        return {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": request.body["model"],
            "content": [block.whole() for block in self.blocks],
            "stop_reason": self._stop(),
            "stop_sequence": None,
            "usage": {**self._first_usage(request), **self._last_usage(request)},
        }

    def _stop(self) -> str:
        return self.stop or ("tool_use" if any(isinstance(block, Tool) for block in self.blocks) else "end_turn")

    def _first_usage(self, request: Recorded) -> Mapping[str, Any]:
        if self.usage_first is not None:
            return self.usage_first
        cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"input_tokens": counted(request.raw), **cached, "output_tokens": 1}

    def _last_usage(self, request: Recorded) -> Mapping[str, Any]:
        if self.usage is not None:
            return self.usage
        said = json.dumps([block.whole() for block in self.blocks])
        return {"output_tokens": counted(said.encode())}


def counted(data: bytes) -> int:
    """As if a token had four bytes."""
    return len(data) // 4 + 1


def _error(kind: str, message: str) -> Event:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}


@dataclass(frozen=True)
class Refusal:
    """An error in the API's own form, before anything else was said."""

    status: int
    kind: str
    message: str = "refused by the script"
    headers: Mapping[str, str] = field(default_factory=dict)

    async def play(self, request: Recorded, stage: Stage) -> None:
        await stage.head(self.status, JSON | dict(self.headers))
        await stage.body(json.dumps(_error(self.kind, self.message)).encode(), more=False)


def rate_limited(retry_after: str = "0") -> Refusal:
    return Refusal(429, "rate_limit_error", "slow down", {"retry-after": retry_after})


def overloaded() -> Refusal:
    return Refusal(529, "overloaded_error", "Overloaded")


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: malformed events, no event at all, another status. `cut` drops the connection at the end."""

    chunks: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(SSE))
    pace_s: float = 0.0
    cut: bool = False

    async def play(self, request: Recorded, stage: Stage) -> None:
        await stage.head(self.status, self.headers)
        for chunk in self.chunks:
            await stage.pause(self.pace_s)
            await stage.body(chunk, more=True)
        if self.cut:
            raise CutError
        await stage.body(b"", more=False)
