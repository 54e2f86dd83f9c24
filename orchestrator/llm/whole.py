"""A whole message, put together from the events of its stream."""

import json
from typing import Any

from orchestrator.llm.refusal import STATUSES, Refused

_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
LARGEST = 32 << 20


class Whole:
    """For a caller who did not want a stream. Raises Refused where the stream is none, or says that it failed."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._json: dict[int, list[str]] = {}
        self._stopped = False
        self._size = 0

    def add(self, events: list[dict[str, Any]], size: int) -> None:
        """`size` is how many bytes came."""
        self._size += size
        if self._size > LARGEST:
            raise Refused(502, "the answer is too large to be handed on as a whole")
        try:
            for event in events:
                self._add(event)
        except (KeyError, IndexError, TypeError, ValueError):
            raise Refused(502, "the provider's stream cannot be read") from None

    def message(self) -> bytes:
        if self._message is None or not self._stopped:
            raise Refused(502, "the provider's stream ended before the message did")
        return json.dumps(self._message).encode("utf-8")

    def _add(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
                self._message["content"] = []
            case "content_block_start":
                self._blocks.append(dict(event["content_block"]))
            case "content_block_delta":
                self._grow(event["index"], event["delta"])
            case "content_block_stop":
                if parts := self._json.pop(event["index"], None):
                    self._blocks[event["index"]]["input"] = json.loads("".join(parts) or "{}")
            case "message_delta":
                self._change(event)
            case "message_stop":
                self._stopped = True
            case "error":
                raise _failure(event.get("error"))

    @property
    def _blocks(self) -> list[dict[str, Any]]:
        if self._message is None:
            raise ValueError("no message has begun")
        blocks: list[dict[str, Any]] = self._message["content"]
        return blocks

    def _grow(self, index: int, delta: dict[str, Any]) -> None:
        kind, block = delta["type"], self._blocks[index]
        if kind in _GROWS:
            name = _GROWS[kind]
            block[name] = (block.get(name) or "") + delta[name]
        elif kind == "input_json_delta":
            self._json.setdefault(index, []).append(delta["partial_json"])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]

    def _change(self, event: dict[str, Any]) -> None:
        if self._message is None:
            raise ValueError("no message has begun")
        self._message.update(event["delta"])
        said = {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
        self._message["usage"] = {**(self._message.get("usage") or {}), **said}
        for name in ("context_management",):
            if name in event:
                self._message[name] = event[name]


def _failure(error: Any) -> Refused:
    kind = error.get("type") if isinstance(error, dict) else None
    status = STATUSES.get(str(kind), 500)
    told = str(error.get("message", ""))[:500] if isinstance(error, dict) else ""
    return Refused(status, told or "the provider failed in the middle of its answer", {})
