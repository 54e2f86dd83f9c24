"""The genuine client, through the gateway, against the test server: what passes, and what is refused."""

import json
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from pydantic import SecretStr

from orchestrator.domain.model_use import CallEnding, Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm import asgi
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import LARGEST_BODY, Gateway
from orchestrator.llm.open_line import OpenLine
from orchestrator.llm.prices import UnknownModel
from orchestrator.llm.upstream import Upstream
from orchestrator.watch.signals import Kind
from tests.messages import Block, Hidden, Raw, Refusal, Reply, Text, Thinking, Tool, overloaded, rate_limited
from tests.orchestrator.llm.conftest import DOLLAR, QUICK, Desk
from tests.orchestrator.llm.hearing import ASKED, MODEL, PRICES, Listener, asked

BLOCKS: list[Block] = [Thinking("Let me see. " * 9), Hidden(), Text("Grüße, 世界. " * 9), Tool("edit", {"n": [1, {}]})]
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 10_000}
DOCUMENT = [{"role": "user", "content": [{"type": "document", "source": PDF}]}]
HI = [{"role": "user", "content": "Hi"}]


async def create(client: AsyncAnthropic, **fields: Any) -> Any:
    return await client.messages.create(**{**ASKED, **fields})


async def raw(
    line: OpenLine, body: Any = None, headers: dict[str, str] | None = None, **more: Any
) -> tuple[int, bytes]:
    told = {"x-api-key": line.token, "anthropic-version": "2023-06-01"} if headers is None else headers
    data = body if isinstance(body, bytes) else json.dumps({**ASKED, **(body or {})}).encode()
    place = {"method": "POST", "path": "/v1/messages", **more}
    async with asgi.asked(line.app, place["method"], place["path"], told, data) as answered:
        return answered.status, b"".join([chunk async for chunk in answered.chunks])


def nowhere() -> Gateway:
    """In front of a provider where nobody listens."""
    return Gateway(Upstream("http://127.0.0.1:9", SecretStr("k"), QUICK), PRICES)


@pytest.mark.parametrize("streamed", [True, False])
async def test_all_kinds_of_blocks(desk: Desk, streamed: bool) -> None:
    """Streamed or whole, the caller gets the same message as from the provider, and the provider is always streamed."""
    desk.server.play(Reply(BLOCKS, piece=5))
    if streamed:
        async with desk.client.messages.stream(**ASKED) as stream:
            message = await stream.get_final_message()
    else:
        message = await create(desk.client)
    assert [block.model_dump(exclude_none=True) for block in message.content] == [block.whole() for block in BLOCKS]
    assert (message.stop_reason, message.usage.output_tokens > 1) == ("tool_use", True)
    assert desk.server.bodies[0]["stream"] is True
    assert desk.ear.used.ending is CallEnding.COMPLETE
    assert desk.ear.used.tokens == Tokens(input=message.usage.input_tokens, output=message.usage.output_tokens)


async def test_bytes_pass_unchanged(desk: Desk) -> None:
    """A stream is handed on byte for byte, also where it is nothing that we understand."""
    strange = [b"event: new\ndata: {}\n\n", b": \xff\x00comment\r\n", b"data: {not json\n\n", b"\n\n\n", b"end"]
    desk.server.play(Raw(strange))
    assert await raw(desk.line, {"stream": True}) == (200, b"".join(strange))


async def test_headers(desk: Desk) -> None:
    """Version and beta reach the provider, with the key; the token, cookies and the caller's other words do not."""
    desk.server.play(Reply(headers={"anthropic-ratelimit-tokens-remaining": "7", "set-cookie": "a=b"}))
    passed = {"anthropic-version": "2026-10-21", "anthropic-beta": "context-1m-2025-08-07"}
    kept = {
        "authorization": f"Bearer {desk.line.token}",
        "anthropic-workspace-id": "wrkspc_other",
        "cookie": "c=d",
        "x-forwarded-for": "10.0.0.1",
    }
    headers = {**passed, **kept, "host": "elsewhere.example"}
    async with asgi.asked(desk.line.app, "POST", "/v1/messages", headers, json.dumps(ASKED).encode()) as answered:
        told = dict(answered.headers)
    (seen,) = desk.server.requests
    assert seen.headers["x-api-key"] == desk.server.key
    assert {name: seen.headers[name] for name in passed} == passed
    assert desk.line.token not in str(seen.headers)
    assert not kept.keys() & seen.headers.keys()
    assert desk.server.url.endswith(seen.headers["host"])
    assert (told[b"anthropic-ratelimit-tokens-remaining"], told[b"request-id"]) == (b"7", b"req_test")
    assert b"set-cookie" not in told


async def test_without_a_token(desk: Desk) -> None:
    """Who has no token gets nothing, in the API's own form, wherever it knocks, nor with the provider's own key."""
    keys = [{}, {"x-api-key": "sk-ant-guess"}, {"authorization": "Basic eA=="}, {"x-api-key": desk.server.key}]
    for headers in keys:
        for method, path in [("POST", "/v1/messages"), ("POST", "/v1/messages/count_tokens"), ("GET", "/v1/models")]:
            status, body = await raw(desk.line, headers=headers, method=method, path=path)
            assert (status, json.loads(body)["error"]["type"]) == (401, "authentication_error")
    assert desk.server.requests == desk.server.counts == []


async def test_not_offered(desk: Desk) -> None:
    """Batches, files and all else are not there, in the API's own form. Only the models of the allowance are listed."""
    for place in ("POST /v1/messages/batches", "POST /v1/complete", "GET /v1/files", "GET /", "GET /v1/messages"):
        method, path = place.split()
        status, body = await raw(desk.line, method=method, path=path)
        assert (status, json.loads(body)["error"]["type"]) == (404, "not_found_error")
    assert [model.id async for model in desk.client.models.list()] == [MODEL, "claude-sonnet-4-5"]
    assert (await desk.client.models.retrieve(MODEL)).id == MODEL
    with pytest.raises(anthropic.NotFoundError):
        await desk.client.models.retrieve("claude-opus-4-5")


async def test_unknown_model_before_the_first_call(desk: Desk) -> None:
    """A line for a model without a price is not opened."""
    with pytest.raises(UnknownModel, match="no price is known for the model 'claude-9'"):
        async with desk.gateway.open_line(replace(DOLLAR, models=("claude-9",)), desk.ear):
            pass


async def test_count_tokens(desk: Desk) -> None:
    """Counting is forwarded, and is no call. That it is not offered somewhere says nothing of messages."""
    counted = await desk.client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x" * 400}])
    assert counted.input_tokens > 100
    assert len(desk.server.counts) == 1
    assert (desk.ear.intents, desk.ear.signals) == ([], [])
    async with nowhere() as gateway, gateway.open_line(DOLLAR, Listener()) as other:
        assert isinstance(other, OpenLine)
        status, _ = await raw(other, path="/v1/messages/count_tokens")
        assert (status, gateway.unusable) == (502, None)


async def test_documents_are_counted_first(desk: Desk) -> None:
    """A PDF passes: the provider counts it, that bounds the call, and it is booked like any other."""
    counted = 3_000
    desk.server.count = lambda _: counted
    desk.server.play(Reply(usage_first={"input_tokens": counted, "output_tokens": 1}, usage={"output_tokens": 9}))
    await create(desk.client, messages=DOCUMENT)
    assert len(desk.server.counts) == len(desk.server.requests) == 1
    (intent,) = desk.ear.intents
    assert counted < intent.worst.tokens - 1000 < 2 * counted
    assert desk.ear.used.tokens == Tokens(input=counted, output=9)


async def test_a_document_that_nobody_counts(desk: Desk) -> None:
    """Where the provider does not count it, nothing bounds a PDF: it is refused, and nobody else is blamed."""
    desk.server.count = lambda _: None
    desk.server.play(Reply())
    with pytest.raises(anthropic.BadRequestError, match="did not count the document"):
        await create(desk.client, messages=DOCUMENT)
    assert (desk.server.requests, desk.ear.intents) == ([], [])
    await create(desk.client)
    assert desk.ear.used.ending is CallEnding.COMPLETE


@pytest.mark.parametrize("refusal", [rate_limited(), overloaded()])
async def test_T86_a_document_that_nobody_counts_now(desk: Desk, refusal: Refusal) -> None:
    """A provider that is overloaded when a PDF is to be counted, or that a count never reaches, is away: the caller
    hears so, may try again, and does not pay for it.
    """
    desk.server.count = lambda _: refusal
    with pytest.raises(anthropic.APIStatusError) as told:
        await create(desk.client, messages=DOCUMENT)
    assert (told.value.status_code, told.value.response.headers.get("x-should-retry")) == (refusal.status, None)
    assert (desk.line.unanswered, desk.line.refusal) == (True, None)
    async with nowhere() as gateway, gateway.open_line(DOLLAR, desk.ear) as line, client_of(line) as client:
        with pytest.raises(anthropic.InternalServerError):
            await create(client, messages=DOCUMENT)
        assert line.unanswered


async def test_refused_features_reach_nobody(desk: Desk) -> None:
    """What cannot be priced is refused before anything is recorded or forwarded."""
    with pytest.raises(anthropic.BadRequestError, match="runs at the provider"):
        await create(desk.client, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with pytest.raises(anthropic.PermissionDeniedError, match="not in this allowance"):
        await create(desk.client, model="claude-opus-4-5")
    assert (desk.server.requests, desk.ear.intents) == ([], [])


async def test_intent_before_effect(desk: Desk) -> None:
    """A call that cannot be put on record is not forwarded, and holds nothing."""
    desk.ear.refuse = True
    with pytest.raises(anthropic.InternalServerError, match="could not be put on record"):
        await create(desk.client)
    assert (desk.server.requests, desk.ear.ends) == ([], [])
    assert desk.ear.kinds == [Kind.REQUESTED, Kind.CUT]
    desk.ear.refuse = False
    desk.server.play(Reply())
    await create(desk.client)


async def test_worst_case_and_price(desk: Desk) -> None:
    """The intent has the worst case, the end what was billed."""
    desk.server.play(Reply(usage_first={"input_tokens": 30, "output_tokens": 1}, usage={"output_tokens": 100}))
    await create(desk.client)
    (intent,) = desk.ear.intents
    worst = asked()
    assert intent.worst == worst.worst == Spent(microdollars=worst.given + 5000, tokens=worst.given + 1000)
    assert desk.ear.used.spent == Spent(microdollars=30 + 500, tokens=130)
    assert desk.ear.used.first_s is not None


async def test_tools_answered_once(desk: Desk) -> None:
    """A tool's call and its result are heard once each, though every request tells the whole story again."""
    desk.server.answering(lambda _: Reply([Tool("bash", {"command": "ls"})]))
    story: list[dict[str, Any]] = [*HI]
    for turn in range(3):
        await create(desk.client, messages=story)
        name = f"toolu_{turn}"
        story += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "a.py"}]},
        ]
    await create(desk.client, messages=story)
    await create(desk.client, messages=story)
    for kind, count in ((Kind.TOOL_CALLED, 5), (Kind.TOOL_ANSWERED, 3)):
        digests = [signal.digest for signal in desk.ear.signals if signal.kind is kind]
        assert (len(digests), len(set(digests))) == (count, 1)


async def test_rate_limited_by_us(desk: Desk) -> None:
    """More requests a minute than allowed are told when to come again; counting has a limit too."""
    desk.server.answering(lambda _: Reply())
    allowance = replace(DOLLAR, per_minute=2)
    async with desk.gateway.open_line(allowance, desk.ear) as line, client_of(line) as client:
        await create(client)
        await create(client)
        with pytest.raises(anthropic.RateLimitError, match="2 requests a minute") as limited:
            await create(client)
        assert 1 <= int(limited.value.response.headers["retry-after"]) <= 60
        for _ in range(2):
            await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x"}])
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x"}])
    assert len(desk.server.requests) == 2


async def test_a_token_ends(desk: Desk) -> None:
    """After its time it is worth nothing, and it outlives its line by nothing."""
    now = [10.0]
    upstream = Upstream(desk.server.url, SecretStr(desk.server.key), QUICK)
    desk.server.answering(lambda _: Reply())
    short = replace(DOLLAR, expires_at=20.0)
    async with Gateway(upstream, PRICES, lambda: now[0]) as gateway, gateway.open_line(short, desk.ear) as line:
        messages = client_of(line)
        await create(messages)
        now[0] = 20.0
        with pytest.raises(anthropic.AuthenticationError, match="expired"):
            await create(messages)
    async with desk.gateway.open_line(DOLLAR, desk.ear) as kept:
        assert isinstance(kept, OpenLine)
    assert (await raw(kept))[0] == 401
    assert len(desk.server.requests) == 1


async def test_one_line_is_not_another(desk: Desk) -> None:
    """What one line does is heard and paid by that line alone."""
    desk.server.answering(lambda _: Reply())
    ear = Listener()
    async with desk.gateway.open_line(DOLLAR, ear) as other, client_of(other) as client:
        assert desk.line.token != other.token
        await create(client)
    assert (len(desk.ear.ends), len(ear.ends)) == (0, 1)


async def test_large_and_encoded_bodies(desk: Desk) -> None:
    """A body past the cap is refused as the API does it, and no longer counts; so is one that is to be unpacked."""
    for _ in range(12):
        status, body = await raw(desk.line, b"x" * (LARGEST_BODY + 1))
        assert (status, json.loads(body)["error"]["type"]) == (413, "request_too_large")
    assert (await raw(desk.line, headers={"x-api-key": desk.line.token, "content-encoding": "gzip"}))[0] == 400
    desk.server.play(Reply())
    assert (await raw(desk.line))[0] == 200


async def test_allowance_used_up(desk: Desk) -> None:
    """A call that cannot fit is refused before it is forwarded, in a form that the client does not try again."""
    desk.server.answering(lambda _: Reply())
    small = replace(DOLLAR, microdollars=asked().worst.microdollars - 1)
    async with desk.gateway.open_line(small, desk.ear) as line, client_of(line) as client:
        with pytest.raises(anthropic.APIStatusError, match="of the allowance are left") as refused:
            await create(client.with_options(max_retries=5))
        assert (refused.value.status_code, refused.value.type) == (402, "billing_error")
        assert (await create(client, max_tokens=900)).stop_reason == "end_turn"
    assert len(desk.server.requests) == 1


async def test_redirects_are_not_followed(desk: Desk) -> None:
    """A provider that points elsewhere is not followed: the key goes nowhere else."""
    desk.server.play(Raw([b""], 307, {"location": f"{desk.server.url}/v1/messages"}))
    with pytest.raises(anthropic.InternalServerError, match="status 307"):
        await create(desk.client)
    assert len(desk.server.requests) == 1
