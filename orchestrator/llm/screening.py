"""What of a request may pass: only what has a price, a bound, and does not make the provider reach out for an agent.

Everything is on a list of what is known. A field, a tool or a block that is not on it is refused by name: it may cost
what nobody counts, or open a way out of a chamber that has none.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.bounded_json import has_most_parts
from orchestrator.domain.records import Spent
from orchestrator.llm.prices import Price, Prices
from orchestrator.llm.refusal import Refused

# A token has at least one byte of what was sent. What is sent beside it: the API's own words about tools, those of a
# tool that it defines itself, and an image, which has no more tokens than this however many pixels it has.
BESIDE = 2_000
BESIDE_TOOL = 4_000
BESIDE_IMAGE = 8_000
MOST_OUTPUT = 1_000_000
# Lists, objects and members of a body: many times what a long conversation has. What is larger than small is read in a
# thread, so that everybody else goes on meanwhile.
MOST_PARTS = 250_000
SMALL = 16_384

_FREE = {
    "cache_control", "diagnostics", "max_tokens", "messages", "metadata", "model", "output_config", "output_format",
    "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
}  # fmt: skip
_ONE_OF: Mapping[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "standard_only"),
    "speed": (None, "standard"),
    "inference_geo": (None, "global"),
    "container": (None,),
    "mcp_servers": (None, []),
    "fallbacks": (None, []),
}
_OWN_TOOLS = ("bash_", "text_editor_", "memory_", "computer_2")
_BLOCKS = {"text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result"}
_SOURCES = {"image": ("base64",), "document": ("text", "content", "base64")}
# What of a request the provider counts.
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")
_DEEPEST = 64


@dataclass(frozen=True)
class Asked:
    """A request that may pass. `body` is what is forwarded: it was written again from what was read here.

    `given` is more than its input can have in tokens, however it is billed. `written` and `hour` say whether it writes
    to the cache, and for an hour. `unbounded`: its bytes say nothing of its tokens, and the provider must count them
    first.
    """

    model: str
    price: Price
    max_tokens: int
    stream: bool
    given: int
    written: bool
    hour: bool
    fields: Mapping[str, Any]
    body: bytes
    unbounded: bool = False

    @property
    def to_count(self) -> bytes:
        """The same, as a request to count its input."""
        return _written({name: self.fields[name] for name in _COUNTED if name in self.fields})

    def counted(self, tokens: int) -> "Asked":
        """With what the provider counts, which is nearly what it bills."""
        return replace(self, given=tokens + tokens // 20 + BESIDE, unbounded=False)

    @property
    def worst(self) -> Spent:
        cost = self.price.worst(self.given, self.max_tokens, written=self.written, hour=self.hour)
        return Spent(microdollars=cost, tokens=self.given + self.max_tokens)


def screened(raw: bytes, models: tuple[str, ...], prices: Prices, *, counting: bool = False) -> Asked:
    """Raises Refused, whatever the body is. With `counting`, it is to be counted only: it has no output."""
    try:
        return _screened(raw, models, prices, counting=counting)
    except RecursionError:
        raise Refused(400, "the body is nested too deeply") from None


def _screened(raw: bytes, models: tuple[str, ...], prices: Prices, *, counting: bool) -> Asked:
    fields = _read(raw)
    model = fields.get("model")
    if not isinstance(model, str):
        raise Refused(400, "model: a name is needed")
    if model not in models:
        # An agent's small questions may go to another model than its work does.
        change = f"set the agent up to ask {models[0]}, or name the model in model.models"
        why = f"model: {model[:80]!r} is not in this allowance; it has {', '.join(models)}"
        raise Refused(403, why, change=change)
    price = prices.of(model)
    max_tokens = 0 if counting else _max_tokens(fields)
    _check_fields(fields)
    looked = _Looked()
    looked.at_tools(fields.get("tools"))
    looked.at_content(fields.get("system"), "system", 0)
    looked.at_messages(fields.get("messages"))
    stream = fields.get("stream", False)
    if not isinstance(stream, bool):
        raise Refused(400, "stream: must be true or false")
    body = _written(fields if counting else {**fields, "stream": True})
    given = len(body) + BESIDE + looked.beside
    written, hour = _cached(body)
    return Asked(model, price, max_tokens, stream, given, written, hour, fields, body, looked.unbounded)


def _read(raw: bytes) -> dict[str, Any]:
    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    if not has_most_parts(raw, MOST_PARTS):
        raise Refused(400, f"the body has more than {MOST_PARTS} parts")
    try:
        fields = json.loads(raw, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON") from None
    if not isinstance(fields, dict):
        raise Refused(400, "the body must be a JSON object")
    return fields


def _written(fields: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Refused(400, "the body has text that is no Unicode, or a number that is no JSON") from None


def _cached(body: bytes) -> tuple[bool, bool]:
    """Whether it may write to the cache, and for longer than five minutes: wherever it says so, known to us or not.

    The body is our own writing: within a text, these quotes would be escaped.
    """
    written = b'"cache_control":' in body
    return written, written and body.count(b'"ttl":') > body.count(b'"ttl":"5m"')


def _max_tokens(fields: Mapping[str, Any]) -> int:
    wanted = fields.get("max_tokens")
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 0 <= wanted <= MOST_OUTPUT:
        raise Refused(400, f"max_tokens: a whole number from 0 to {MOST_OUTPUT} is needed")
    return wanted


def _check_fields(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name in _FREE or (name in _ONE_OF and value in _ONE_OF[name]):
            continue
        if name == "context_management":
            _check_edits(value)
            continue
        why = f"{name[:80]}: not offered here, because its price or its reach is not known beforehand"
        raise Refused(400, why, change="set the agent up to leave it out", always=True)


def _check_edits(value: Any) -> None:
    """Clearing what was said costs nothing; having it summed up is a call of its own."""
    edits = value.get("edits", []) if isinstance(value, dict) else [] if value is None else [value]
    for edit in edits if isinstance(edits, list) else [edits]:
        kind = edit.get("type") if isinstance(edit, dict) else None
        if not isinstance(kind, str) or not kind.startswith("clear_"):
            raise Refused(400, f"context_management: {str(kind)[:80]!r} is not offered here; clear_… is")


class _Looked:
    """Walks through all that is sent, adds up what is not in its bytes, and refuses what has no bound."""

    def __init__(self) -> None:
        self.beside = 0
        self.unbounded = False

    def at_tools(self, tools: Any) -> None:
        for tool in _listed(tools, "tools"):
            if (kind := tool.get("type")) not in (None, "custom"):
                if not isinstance(kind, str):
                    raise Refused(400, "tools: type must be a name")
                if not kind.startswith(_OWN_TOOLS):
                    why = f"tools: {kind[:80]!r} runs at the provider and is not offered here"
                    raise Refused(400, why, change="set the agent up to leave it out", always=True)
                self.beside += BESIDE_TOOL

    def at_messages(self, messages: Any) -> None:
        if not isinstance(messages, list):
            raise Refused(400, "messages: a list is needed")
        for message in _listed(messages, "messages"):
            self.at_content(message.get("content"), "messages", 0)

    def at_content(self, content: Any, where: str, depth: int) -> None:
        if content is None or isinstance(content, str):
            return
        if depth > _DEEPEST:
            raise Refused(400, f"{where}: nested too deeply")
        for block in _listed(content, where):
            self._at_block(block, where, depth)

    def _at_block(self, block: Mapping[str, Any], where: str, depth: int) -> None:
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _BLOCKS:
            raise Refused(400, f"{where}: a block of type {str(kind)[:80]!r} is not offered here")
        source = block.get("source")
        if kind in _SOURCES:
            if not isinstance(source, dict) or source.get("type") not in _SOURCES[kind]:
                allowed = " or ".join(_SOURCES[kind])
                raise Refused(400, f"{where}: the source of a {kind} must be of type {allowed}; others are not offered")
            if source.get("type") == "content":
                self.at_content(source.get("content"), where, depth + 1)
            if kind == "document" and source.get("type") == "base64":
                if source.get("media_type") != "application/pdf":
                    raise Refused(400, f"{where}: a base64 document must have the media_type application/pdf")
                self.unbounded = True
        if kind == "image":
            self.beside += BESIDE_IMAGE
        if kind in ("tool_result", "search_result"):
            self.at_content(block.get("content"), where, depth + 1)


def _listed(things: Any, where: str) -> Iterator[Mapping[str, Any]]:
    if things is None:
        return
    if not isinstance(things, list) or not all(isinstance(thing, dict) for thing in things):
        raise Refused(400, f"{where}: must be a list of objects")
    yield from things
