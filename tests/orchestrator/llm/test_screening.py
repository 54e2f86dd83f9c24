"""What of a request may pass: what has a price and a bound, and reaches nobody but the provider."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from orchestrator.llm import asgi
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.refusal import Refused
from orchestrator.llm.screening import BESIDE, BESIDE_IMAGE, BESIDE_TOOL, MOST_PARTS, screened
from orchestrator.llm.upstream import Upstream
from tests.messages import MessagesServer, Reply
from tests.orchestrator.llm.conftest import DOLLAR
from tests.orchestrator.llm.hearing import ASKED, MODEL, PRICES, Listener, asked

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}


def user(*blocks: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(blocks)}]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, "web_fetch"),
        ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "code_execution"),
        ({"tools": [{"type": "tool_search_tool_bm25_20251119", "name": "t"}]}, "tool_search"),
        ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}, "mcp_toolset"),
        ({"tools": [7]}, "tools"),
        ({"mcp_servers": [{"type": "url", "url": "https://elsewhere.example"}]}, "mcp_servers"),
        ({"container": "container_1"}, "container"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"speed": "fast"}, "speed"),
        ({"inference_geo": "us"}, "inference_geo"),
        ({"fallbacks": [{"model": "claude-opus-4-5"}]}, "fallbacks"),
        ({"thread": {"id": "t"}}, "thread"),
        ({"compaction": {}}, "compaction"),
        ({"context_management": {"edits": [{"type": "compact_20260112"}]}}, "compact"),
        ({"something_new": 1}, "something_new"),
        ({"messages": user({"type": "image", "source": {"type": "url", "url": "https://x.example/?d=1"}})}, "image"),
        (
            {"messages": user({"type": "document", "source": {"type": "base64", "media_type": "image/gif"}})},
            "application/pdf",
        ),
        ({"messages": user({"type": "document", "source": {"type": "url", "url": "https://x.example"}})}, "document"),
        ({"messages": user({"type": "document", "source": {"type": "file", "file_id": "f"}})}, "document"),
        ({"messages": user({"type": "container_upload", "file_id": "f"})}, "container_upload"),
        (
            {"messages": user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "server_tool_use"}]})},
            "server_tool_use",
        ),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": "Hi"}, "messages"),
        ({"stream": "yes"}, "stream"),
        ({"system": {"type": "text"}}, "system"),
    ],
)
def test_refused(fields: dict[str, Any], said: str) -> None:
    """What runs at the provider, reaches out for an agent, or has no price and no bound, is refused by name."""
    with pytest.raises(Refused, match=said) as refused:
        asked(**fields)
    assert refused.value.status == 400
    assert json.loads(refused.value.body())["error"]["type"] == "invalid_request_error"
    assert refused.value.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"name": "edit", "input_schema": {"type": "object"}}, {"type": "custom", "name": "b"}]},
        {"tools": [{"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "e"}]},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 1, "metadata": {"user_id": "u"}},
        {"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}], "service_tier": "auto"},
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "speed": None, "mcp_servers": []},
        {"messages": user({"type": "tool_result", "tool_use_id": "t", "content": [PICTURE]})},
        {"messages": user({"type": "document", "source": {"type": "text", "data": "plain"}})},
        {"messages": user({"type": "tool_result", "tool_use_id": "t", "content": [PDF]})},
    ],
)
def test_passes(fields: dict[str, Any]) -> None:
    """Tools of the caller, thinking, caching, images and documents pass, as they were sent."""
    sent = json.loads(asked(**fields).body)
    assert sent == {**ASKED, **fields, "stream": True}


def test_model_outside_of_the_allowance() -> None:
    """A model that was not given is refused, and those that were are named."""
    with pytest.raises(Refused, match="claude-opus-4-5.*not in this allowance; it has " + MODEL) as refused:
        screened(json.dumps({**ASKED, "model": "claude-opus-4-5"}).encode(), (MODEL,), PRICES)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{", b'{"model": NaN}', b"[" * 100_000, b"\xff\xfe", b'"' + b"\\ud800" + b'"', b"null"],
)
def test_no_request(raw: bytes) -> None:
    """What is no JSON object is refused as the API would."""
    with pytest.raises(Refused, match="body"):
        screened(raw, (MODEL,), PRICES)


def test_half_a_character() -> None:
    """Text that cannot be written as Unicode is refused: what is forwarded would be something else."""
    raw = json.dumps({**ASKED, "system": "\ud800"}).encode()
    with pytest.raises(Refused, match="Unicode"):
        screened(raw, (MODEL,), PRICES)


def test_said_twice() -> None:
    """Where a name occurs twice, what is forwarded is what was looked at: there is nothing to read differently."""
    raw = json.dumps(ASKED).encode().replace(b'"max_tokens": 1000', b'"max_tokens": 9, "max_tokens": 1000')
    looked_at = screened(raw, (MODEL,), PRICES)
    assert looked_at.max_tokens == 1000
    assert looked_at.body.count(b"max_tokens") == 1


def test_worst_case() -> None:
    """A token a byte, the output that was asked for, and the price of a write where it writes to the cache."""
    plain = asked()
    assert plain.given == len(plain.body) + BESIDE
    assert plain.worst.microdollars == plain.given * 1 + 1000 * 5
    short = asked(cache_control={"type": "ephemeral"})
    assert short.worst.microdollars == -(-short.given * 125 // 100) + 5000
    hour = asked(system=[{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}])
    assert hour.worst.microdollars == hour.given * 2 + 5000


@pytest.mark.parametrize(
    ("fields", "written", "hour"),
    [
        ({"metadata": {"x": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}}, True, True),
        ({"output_config": {"cache_control": {"type": "ephemeral", "ttl": "5m"}}}, True, False),
        ({"system": 'say "cache_control":{"ttl":"1h"}'}, False, False),
        ({"metadata": {"ttl": "1h"}}, False, False),
    ],
)
def test_caching_wherever_it_is_asked_for(fields: dict[str, Any], written: bool, hour: bool) -> None:
    """A write to the cache is assumed wherever the request may ask for one, and not where it only talks of it."""
    looked_at = asked(**fields)
    assert (looked_at.written, looked_at.hour) == (written, hour)


def test_what_is_not_in_the_bytes() -> None:
    """A tool that the API defines itself, and an image, have more tokens than bytes: that is added."""
    tool = asked(tools=[{"type": "bash_20250124", "name": "bash"}])
    assert tool.given == len(tool.body) + BESIDE + BESIDE_TOOL
    images = asked(messages=user(PICTURE, {"type": "tool_result", "tool_use_id": "t", "content": [PICTURE]}))
    assert images.given == len(images.body) + BESIDE + 2 * BESIDE_IMAGE


def test_a_document_is_bounded_by_the_count_of_it() -> None:
    """The bytes of a PDF say nothing of its tokens: what the provider counts is the bound, with a little more."""
    pdf = asked(messages=user(PDF), temperature=0.5)
    assert pdf.unbounded
    assert json.loads(pdf.to_count) == {"model": MODEL, "messages": user(PDF)}
    assert (pdf.counted(10_000).given, pdf.counted(10_000).unbounded) == (10_500 + BESIDE, False)
    assert not asked(messages=user(PICTURE)).unbounded


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_anything_is_refused_or_bounded(value: Any) -> None:
    """Whatever stands in any field, the answer is a refusal or a worst case that covers every byte."""
    for name in ("messages", "system", "tools", "cache_control", "context_management", "model", "max_tokens"):
        raw = json.dumps({**ASKED, name: value}).encode()
        with suppress(Refused):
            passed = screened(raw, (MODEL,), PRICES)
            assert passed.given > len(passed.body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["type", "role", "content", "source", "text", "ttl", "edits"]), inner)
    ),
    max_leaves=12,
)
KINDS = st.sampled_from(["text", "image", "document", "tool_result", "search_result", "tool_use"]) | JSON
BLOCKS = st.fixed_dictionaries({"type": KINDS}, optional={"source": JSON, "content": JSON, "cache_control": JSON})
MESSAGES = st.fixed_dictionaries({"role": st.just("user") | JSON, "content": st.lists(BLOCKS, max_size=3) | JSON})
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "model": JSON,
        "max_tokens": JSON,
        "messages": st.lists(MESSAGES, max_size=3) | JSON,
        **dict.fromkeys(("system", "tools", "speed", "stream", "context_management", "mcp_servers", "thread"), JSON),
    },
)


@settings(
    deadline=None,
    max_examples=3 * settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.builds(lambda fields: {**ASKED, **fields}, FIELDS) | JSON)
async def test_any_body_is_forwarded_or_refused(messages_server: MessagesServer, body: Any) -> None:
    """Whatever JSON comes in, it is forwarded, or refused in the API's own form as the fault of who sent it."""
    messages_server.answering(lambda _: Reply())
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key))
    before = len(messages_server.requests)
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, Listener()) as line:
        raw, headers = json.dumps(body).encode(), {"x-api-key": line.token}
        async with asgi.asked(line.app, "POST", "/v1/messages", headers, raw) as answered:
            told = b"".join([chunk async for chunk in answered.chunks])
    if len(messages_server.requests) > before:
        assert answered.status == 200
    else:
        assert 400 <= answered.status < 500
        assert json.loads(told)["error"]["message"]


def test_t82_a_body_of_many_parts() -> None:
    """A body made of millions of lists is refused before it is parsed; its twin, a text with as many commas, passes."""
    parts = b'{"model":"%s","x":[' % MODEL.encode() + b"[]," * MOST_PARTS + b"[]]}"
    with pytest.raises(Refused, match="more than 250000 parts"):
        screened(parts, (MODEL,), PRICES)
    text = json.dumps({**ASKED, "messages": [{"role": "user", "content": '[{,"\\' * MOST_PARTS}]}).encode()
    assert screened(text, (MODEL,), PRICES).given > len(text) // 2
