"""Blocks of an answer, as a whole and as the events of a stream."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


@dataclass(frozen=True)
class Text:
    text: str

    def whole(self) -> Event:
        return {"type": "text", "text": self.text}

    def opening(self) -> Event:
        return {"type": "text", "text": ""}

    def deltas(self, size: int) -> Iterator[Event]:
        return ({"type": "text_delta", "text": piece} for piece in _cut(self.text, size))


@dataclass(frozen=True)
class Thinking:
    text: str
    signature: str = "c2lnbmF0dXJl"

    def whole(self) -> Event:
        return {"type": "thinking", "thinking": self.text, "signature": self.signature}

    def opening(self) -> Event:
        return {"type": "thinking", "thinking": "", "signature": ""}

    def deltas(self, size: int) -> Iterator[Event]:
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in _cut(self.text, size))
        yield {"type": "signature_delta", "signature": self.signature}


@dataclass(frozen=True)
class Hidden:
    """Thinking that is not shown: the block comes at once, encrypted."""

    data: str = "aGlkZGVu"

    def whole(self) -> Event:
        return {"type": "redacted_thinking", "data": self.data}

    def opening(self) -> Event:
        return self.whole()

    def deltas(self, size: int) -> Iterator[Event]:
        return iter(())


@dataclass(frozen=True)
class Tool:
    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    id: str = "toolu_1"

    def whole(self) -> Event:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": dict(self.input)}

    def opening(self) -> Event:
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": {}}

    def deltas(self, size: int) -> Iterator[Event]:
        yield {"type": "input_json_delta", "partial_json": ""}
        pieces = _cut(json.dumps(self.input), size)
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)


Block = Text | Thinking | Hidden | Tool
