"""Counts one stream as it passes: tokens from the bytes of its deltas at once, and as they are billed at its end."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.llm import tools
from orchestrator.llm.screening import Asked
from orchestrator.llm.sse import Reader
from orchestrator.llm.usage import Usage
from orchestrator.watch.signals import Hold, Kind, Signal

_BYTES_A_TOKEN = 4
_LONGEST_INPUT = 1 << 20
_WORDS = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
_THOUGHT = ("thinking_delta", "signature_delta")


@dataclass
class _Tool:
    """A tool's input as it comes, up to a length."""

    name: str
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, part: str) -> None:
        self.size += len(part)
        if self.size <= _LONGEST_INPUT:
            self.parts.append(part)


class Meter:
    """Reads what it is fed and changes none of it. It can be fed nonsense; then nothing is known, and that is all."""

    def __init__(self, call: str, asked: Asked, tell: Callable[[Signal], None], clock: Callable[[], float]) -> None:
        self.usage = Usage(asked)
        self.started = False
        self.stopped = False
        self.first_at: float | None = None
        self.error: dict[str, Any] | None = None
        self._call = call
        self._tell = tell
        self._clock = clock
        self._reader = Reader()
        self._bytes = {False: 0, True: 0}
        self._told = {False: 0, True: 0}
        self._tools: dict[int, _Tool] = {}
        self._last_word = False

    @property
    def complete(self) -> bool:
        """The stream came to its end, with a last word on usage that can be believed."""
        return self._last_word and self.error is None and self.usage.known

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that are whole by now."""
        events = []
        for found in self._reader.feed(chunk):
            try:
                event = json.loads(found.data)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                events.append(event)
                self._hear(event)
        self._flush()
        return events

    def _hear(self, event: dict[str, Any]) -> None:
        if self.stopped:
            return
        match event.get("type"):
            case "message_start":
                self.started = True
                self._signal(Kind.STARTED)
                self._heard_usage(event.get("message"))
            case "ping":
                self._signal(Kind.PING)
            case "content_block_start":
                self._opened(event)
            case "content_block_delta":
                self._said(event)
            case "content_block_stop":
                self._closed(event.get("index"))
            case "message_delta":
                self._flush()
                self._heard_usage(event)
                delta = event.get("delta")
                if isinstance(delta, dict) and delta.get("stop_reason") and isinstance(event.get("usage"), dict):
                    self._last_word = event["usage"].get("output_tokens") is not None
            case "message_stop":
                self.stopped = True
            case "error":
                error = event.get("error")
                self.error = error if isinstance(error, dict) else {}

    def _heard_usage(self, holder: Any) -> None:
        if not isinstance(holder, dict):
            return
        self.usage.heard(holder.get("usage"))
        missed = self.usage.output - sum(self._told.values())
        if missed > 0 and not self.usage.doubt and holder.get("type") == "message_delta":
            self._told[False] += missed
            self._bytes[False] += missed * _BYTES_A_TOKEN
            self._signal(Kind.TOKENS, tokens=missed)

    def _opened(self, event: dict[str, Any]) -> None:
        if self.first_at is None:
            self.first_at = self._clock()
        block = event.get("content_block")
        if not isinstance(block, dict):
            return
        if block.get("type") in ("thinking", "redacted_thinking"):
            self._flush()
            self._signal(Kind.THINKING)
            self._bytes[True] += len(str(block.get("data", "")))
        elif block.get("type") == "tool_use" and isinstance(event.get("index"), int):
            self._tools[event["index"]] = _Tool(str(block.get("name"))[:256])

    def _said(self, event: dict[str, Any]) -> None:
        delta = event.get("delta")
        kind = delta.get("type") if isinstance(delta, dict) else None
        words = delta.get(_WORDS[kind]) if isinstance(delta, dict) and kind in _WORDS else None
        if not isinstance(words, str):
            return
        self._bytes[kind in _THOUGHT] += len(words.encode("utf-8", "surrogatepass"))
        index = event.get("index")
        if kind == "input_json_delta" and isinstance(index, int) and (tool := self._tools.get(index)) is not None:
            tool.add(words)

    def _closed(self, index: Any) -> None:
        if (tool := self._tools.pop(index, None) if isinstance(index, int) else None) is not None:
            self._flush()
            self._signal(Kind.TOOL_CALLED, digest=tools.called_raw(tool.name, "".join(tool.parts)))

    def _flush(self) -> None:
        """What was counted since; one signal for all deltas of a chunk."""
        for thought in (True, False):
            more = self._bytes[thought] // _BYTES_A_TOKEN - self._told[thought]
            if more > 0:
                self._told[thought] += more
                self._signal(Kind.TOKENS, tokens=more, hold=Hold.THINKING if thought else None)

    def _signal(self, kind: Kind, tokens: int = 0, digest: str = "", hold: Hold | None = None) -> None:
        self._tell(Signal(self._clock(), kind, self._call, tokens=tokens, digest=digest, hold=hold))
