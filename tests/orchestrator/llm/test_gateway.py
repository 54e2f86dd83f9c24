"""The genuine client, through the gateway, against the test server."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from pydantic import SecretStr

from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm import asgi
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import LARGEST_BODY, Gateway
from orchestrator.llm.open_line import OpenLine
from orchestrator.llm.prices import UnknownModel
from orchestrator.llm.upstream import Upstream
from orchestrator.watch.signals import Kind
from tests.messages import (
    Block,
    Hang,
    Hidden,
    MessagesServer,
    Raw,
    Refusal,
    Reply,
    Step,
    Text,
    Thinking,
    Tool,
    overloaded,
    rate_limited,
    until,
)
from tests.orchestrator.llm.conftest import DOLLAR, QUICK
from tests.orchestrator.llm.hearing import ASKED, MODEL, PRICES, Listener, asked

BLOCKS: list[Block] = [Thinking("Let me see. " * 9), Hidden(), Text("Grüße, 世界. " * 9), Tool("edit", {"n": [1, {}]})]
NOTHING = Spent()


async def create(client: AsyncAnthropic, **fields: Any) -> Any:
    return await client.messages.create(**{**ASKED, **fields})


async def listen(client: AsyncAnthropic, heard: list[str], **fields: Any) -> None:
    async for event in await create(client, stream=True, **fields):
        heard += [event.type]


async def raw(
    line: OpenLine, body: Any = None, headers: dict[str, str] | None = None, **more: Any
) -> tuple[int, bytes]:
    told = {"x-api-key": line.token, "anthropic-version": "2023-06-01"} if headers is None else headers
    data = body if isinstance(body, bytes) else json.dumps({**ASKED, **(body or {})}).encode()
    place = {"method": "POST", "path": "/v1/messages", **more}
    async with asgi.asked(line.app, place["method"], place["path"], told, data) as answered:
        return answered.status, b"".join([chunk async for chunk in answered.chunks])


@pytest.mark.parametrize("streamed", [True, False])
async def test_all_kinds_of_blocks(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener, streamed: bool
) -> None:
    """Streamed or whole, the caller gets the same message as from the provider, and the provider is always streamed."""
    messages_server.play(Reply(BLOCKS, piece=5))
    if streamed:
        async with client.messages.stream(**ASKED) as stream:
            message = await stream.get_final_message()
    else:
        message = await create(client)
    assert [block.model_dump(exclude_none=True) for block in message.content] == [block.whole() for block in BLOCKS]
    assert (message.stop_reason, message.usage.output_tokens > 1) == ("tool_use", True)
    assert messages_server.bodies[0]["stream"] is True
    assert ear.used.ending is CallEnding.COMPLETE
    assert ear.used.tokens == Tokens(input=message.usage.input_tokens, output=message.usage.output_tokens)


async def test_bytes_pass_unchanged(messages_server: MessagesServer, line: OpenLine) -> None:
    """A stream is handed on byte for byte, also where it is nothing that we understand."""
    strange = [b"event: new\ndata: {}\n\n", b": \xff\x00comment\r\n", b"data: {not json\n\n", b"\n\n\n", b"end"]
    messages_server.play(Raw(strange))
    status, body = await raw(line, {"stream": True})
    assert (status, body) == (200, b"".join(strange))


async def test_headers(messages_server: MessagesServer, line: OpenLine) -> None:
    """Version and beta reach the provider, with the key; the token, cookies and the caller's other words do not."""
    messages_server.play(Reply(headers={"anthropic-ratelimit-tokens-remaining": "7", "set-cookie": "a=b"}))
    headers = {
        "authorization": f"Bearer {line.token}",
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "context-1m-2025-08-07",
        "anthropic-workspace-id": "wrkspc_other",
        "cookie": "c=d",
        "host": "elsewhere.example",
        "x-forwarded-for": "10.0.0.1",
    }
    async with asgi.asked(line.app, "POST", "/v1/messages", headers, json.dumps(ASKED).encode()) as answered:
        told = dict(answered.headers)
    (seen,) = messages_server.requests
    assert seen.headers["x-api-key"] == messages_server.key
    assert (seen.headers["anthropic-version"], seen.headers["anthropic-beta"]) == (
        "2026-10-21",
        "context-1m-2025-08-07",
    )
    assert line.token not in str(seen.headers)
    assert not {"cookie", "authorization", "x-forwarded-for", "anthropic-workspace-id"} & seen.headers.keys()
    assert messages_server.url.endswith(seen.headers["host"])
    assert told[b"anthropic-ratelimit-tokens-remaining"] == b"7"
    assert told[b"request-id"] == b"req_test"
    assert b"set-cookie" not in told


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "sk-ant-guess"}, {"authorization": "Basic eA=="}])
async def test_without_a_token(messages_server: MessagesServer, line: OpenLine, headers: dict[str, str]) -> None:
    """Who has no token gets nothing, in the API's own form, wherever it knocks."""
    for method, path in [("POST", "/v1/messages"), ("POST", "/v1/messages/count_tokens"), ("GET", "/v1/models")]:
        status, body = await raw(line, headers=headers, method=method, path=path)
        assert status == 401
        assert json.loads(body)["error"]["type"] == "authentication_error"
    assert messages_server.requests == messages_server.counts == []


async def test_the_provider_is_not_told_apart(messages_server: MessagesServer, line: OpenLine) -> None:
    """The provider's own key opens nothing here: only a line's token does."""
    status, _ = await raw(line, headers={"x-api-key": messages_server.key})
    assert status == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/complete"),
        ("GET", "/v1/files"),
        ("GET", "/"),
        ("GET", "/v1/messages"),
    ],
)
async def test_not_offered(line: OpenLine, method: str, path: str) -> None:
    """Batches, files and all else are not there, in the API's own form."""
    status, body = await raw(line, method=method, path=path)
    assert status == 404
    assert json.loads(body)["error"]["type"] == "not_found_error"


async def test_models(line: OpenLine, client: AsyncAnthropic) -> None:
    """Only the models of the allowance are listed."""
    assert [model.id async for model in client.models.list()] == [MODEL, "claude-sonnet-4-5"]
    assert (await client.models.retrieve(MODEL)).id == MODEL
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("claude-opus-4-5")


async def test_unknown_model_before_the_first_call(gateway: Gateway, ear: Listener) -> None:
    """A line for a model without a price is not opened."""
    with pytest.raises(UnknownModel, match="no price is known for the model 'claude-9'"):
        async with gateway.open_line(replace(DOLLAR, models=("claude-9",)), ear):
            pass


async def test_count_tokens(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """Counting is forwarded, and is no call: nothing is reserved, recorded or spent."""
    counted = await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x" * 400}])
    assert counted.input_tokens > 100
    assert len(messages_server.counts) == 1
    assert (ear.intents, ear.signals) == ([], [])


async def test_a_provider_that_does_not_count(gateway: Gateway, line: OpenLine) -> None:
    """That counting is not offered there says nothing of messages."""
    upstream = Upstream("http://127.0.0.1:9", SecretStr("k"), QUICK)
    async with Gateway(upstream, PRICES) as nowhere, nowhere.open_line(DOLLAR, Listener()) as other:
        assert isinstance(other, OpenLine)
        status, _ = await raw(other, path="/v1/messages/count_tokens")
        assert (status, nowhere.unusable) == (502, None)


async def test_documents_are_counted_first(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener
) -> None:
    """A PDF passes: the provider counts it, that bounds the call, and it is booked like any other."""
    counted = 3_000
    messages_server.count = lambda _: counted
    messages_server.play(Reply(usage_first={"input_tokens": counted, "output_tokens": 1}, usage={"output_tokens": 9}))
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" * 10_000}
    await create(client, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert len(messages_server.counts) == len(messages_server.requests) == 1
    (intent,) = ear.intents
    assert counted < intent.worst.tokens - 1000 < 2 * counted
    assert ear.used.tokens == Tokens(input=counted, output=9)


async def test_a_document_that_nobody_counts(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener
) -> None:
    """Where the provider does not count it, nothing bounds a PDF: it is refused, and nobody else is blamed."""
    messages_server.count = lambda _: None
    messages_server.play(Reply())
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}
    with pytest.raises(anthropic.BadRequestError, match="did not count the document"):
        await create(client, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert (messages_server.requests, ear.intents) == ([], [])
    await create(client)
    assert ear.used.ending is CallEnding.COMPLETE


@pytest.mark.parametrize("refusal", [rate_limited(), overloaded()])
async def test_T86_a_document_that_nobody_counts_now(
    messages_server: MessagesServer, client: AsyncAnthropic, line: OpenLine, refusal: Refusal
) -> None:
    """A provider that is overloaded when a PDF is to be counted is away: the caller hears so, may try again, and does
    not pay for it.
    """
    messages_server.count = lambda _: refusal
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}
    with pytest.raises(anthropic.APIStatusError) as told:
        await create(client, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert (told.value.status_code, told.value.response.headers.get("x-should-retry")) == (refusal.status, None)
    assert line.unanswered
    assert line.refusal is None


async def test_T86_a_document_while_the_provider_is_away(ear: Listener) -> None:
    """A count that never arrives is the provider's fault like a message that does not."""
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}
    upstream = Upstream("http://127.0.0.1:9", SecretStr("k"), QUICK)
    async with Gateway(upstream, PRICES) as nowhere, nowhere.open_line(DOLLAR, ear) as line, client_of(line) as client:
        with pytest.raises(anthropic.InternalServerError):
            await create(client, messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
        assert line.unanswered


async def test_refused_features_reach_nobody(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener
) -> None:
    """What cannot be priced is refused before anything is recorded or forwarded."""
    with pytest.raises(anthropic.BadRequestError, match="runs at the provider"):
        await create(client, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with pytest.raises(anthropic.PermissionDeniedError, match="not in this allowance"):
        await create(client, model="claude-opus-4-5")
    assert (messages_server.requests, ear.intents) == ([], [])


async def test_intent_before_effect(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """A call that cannot be put on record is not forwarded, and holds nothing."""
    ear.refuse = True
    with pytest.raises(anthropic.InternalServerError, match="could not be put on record"):
        await create(client)
    assert (messages_server.requests, ear.ends) == ([], [])
    assert ear.kinds == [Kind.REQUESTED, Kind.CUT]
    ear.refuse = False
    messages_server.play(Reply())
    await create(client)


async def test_worst_case_and_price(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """The intent has the worst case, the end what was billed."""
    messages_server.play(Reply(usage_first={"input_tokens": 30, "output_tokens": 1}, usage={"output_tokens": 100}))
    await create(client)
    (intent,) = ear.intents
    worst = asked()
    assert intent.worst == worst.worst == Spent(microdollars=worst.given + 5000, tokens=worst.given + 1000)
    assert ear.used.spent == Spent(microdollars=30 + 500, tokens=130)
    assert ear.used.first_s is not None


async def test_tools_answered_once(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """A tool's call and its result are heard once each, though every request tells the whole story again."""
    messages_server.answering(lambda _: Reply([Tool("bash", {"command": "ls"})]))
    story: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    for turn in range(3):
        await create(client, messages=story)
        name = f"toolu_{turn}"
        story += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "a.py"}]},
        ]
    await create(client, messages=story)
    await create(client, messages=story)
    digests = [signal.digest for signal in ear.signals if signal.kind is Kind.TOOL_CALLED]
    answers = [signal.digest for signal in ear.signals if signal.kind is Kind.TOOL_ANSWERED]
    assert (len(digests), len(set(digests))) == (5, 1)
    assert (len(answers), len(set(answers))) == (3, 1)


async def test_rate_limited_by_us(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """More requests a minute than allowed are told when to come again; counting has a limit too."""
    messages_server.answering(lambda _: Reply())
    async with gateway.open_line(replace(DOLLAR, per_minute=2), ear) as line, client_of(line) as client:
        await create(client)
        await create(client)
        with pytest.raises(anthropic.RateLimitError, match="2 requests a minute") as limited:
            await create(client)
        assert 1 <= int(limited.value.response.headers["retry-after"]) <= 60
        for _ in range(2):
            await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x"}])
        with pytest.raises(anthropic.RateLimitError):
            await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "x"}])
    assert len(messages_server.requests) == 2


async def test_expired(messages_server: MessagesServer, ear: Listener) -> None:
    """After its time a token is worth nothing."""
    now = [10.0]
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key), QUICK)
    messages_server.answering(lambda _: Reply())
    short = replace(DOLLAR, expires_at=20.0)
    async with Gateway(upstream, PRICES, lambda: now[0]) as gateway, gateway.open_line(short, ear) as line:
        messages = client_of(line)
        await create(messages)
        now[0] = 20.0
        with pytest.raises(anthropic.AuthenticationError, match="expired"):
            await create(messages)
    assert len(messages_server.requests) == 1


async def test_revoked(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """A token outlives its line by nothing."""
    async with gateway.open_line(DOLLAR, ear) as line:
        kept = line
    assert isinstance(kept, OpenLine)
    status, _ = await raw(kept)
    assert (status, messages_server.requests) == (401, [])


async def test_one_line_is_not_another(gateway: Gateway, messages_server: MessagesServer) -> None:
    """What one line does is heard and paid by that line alone."""
    messages_server.answering(lambda _: Reply())
    ears = [Listener(), Listener()]
    async with gateway.open_line(DOLLAR, ears[0]) as one, gateway.open_line(DOLLAR, ears[1]) as other:
        assert one.token != other.token
        async with client_of(other) as client:
            await create(client)
    assert (len(ears[0].ends), len(ears[1].ends)) == (0, 1)


async def test_large_bodies(line: OpenLine, messages_server: MessagesServer) -> None:
    """A body past the cap is refused as the API does it, and no longer counts for the line."""
    for _ in range(12):
        status, body = await raw(line, b"x" * (LARGEST_BODY + 1))
        assert status == 413
    assert json.loads(body)["error"]["type"] == "request_too_large"
    messages_server.play(Reply())
    assert (await raw(line))[0] == 200


async def test_encoded_bodies(line: OpenLine) -> None:
    """A body that would have to be unpacked is refused."""
    status, _ = await raw(line, headers={"x-api-key": line.token, "content-encoding": "gzip"})
    assert status == 400


async def test_allowance_used_up(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """A call that cannot fit is refused before it is forwarded, in a form that the client does not try again."""
    messages_server.answering(lambda _: Reply())
    small = replace(DOLLAR, microdollars=asked().worst.microdollars - 1)
    async with gateway.open_line(small, ear) as line, client_of(line) as client:
        with pytest.raises(anthropic.APIStatusError, match="of the allowance are left") as refused:
            await create(client.with_options(max_retries=5))
        assert (refused.value.status_code, refused.value.type) == (402, "billing_error")
        assert (await create(client, max_tokens=900)).stop_reason == "end_turn"
    assert len(messages_server.requests) == 1


async def test_parallel_calls_never_pass_the_allowance(
    gateway: Gateway, messages_server: MessagesServer, ear: Listener
) -> None:
    """Fifty at once that want as much as they can get: what is booked and what is open stay within the allowance.

    Each is answered, or refused for money; a provider that counts the output of each at its most changes nothing.
    """
    messages_server.answering(
        lambda request: Reply(first_s=0.005, usage={"output_tokens": request.body["max_tokens"]}, pings=0)
    )
    allowance = Allowance(ModelRole.USER, (MODEL,), 120_000)
    over: list[int] = []
    async with gateway.open_line(allowance, ear) as line, client_of(line) as client:
        assert isinstance(line, OpenLine)
        watched = line.account

        async def seen(call: Any) -> None:
            over.append(watched.spent.microdollars + watched.held.microdollars)

        ear.intended = seen  # type: ignore[method-assign]
        wanted = [1000, 3000, 16_000, 20_000, 999_999]
        calls = [listen(client, [], max_tokens=wanted[number % 5]) for number in range(25)]
        calls += [create(client, max_tokens=wanted[number % 5]) for number in range(25)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(error, anthropic.APIStatusError) and error.status_code == 402 for error in refused)
    assert 0 < len(ear.ends) < 50
    assert max(over) <= 120_000
    assert sum(used.spent.microdollars for _, used in ear.ends) <= 120_000
    assert Kind.WAITING in ear.kinds


async def test_ends_are_exact(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """Every call that was intended ends exactly once, whatever happens to it."""
    steps: list[Step] = [
        Reply(),
        overloaded(),
        Reply(cut_after=4),
        Reply(usage={}),
        Refusal(400, "invalid_request_error"),
    ]
    messages_server.answering(lambda _: steps[len(messages_server.requests) % 5])
    async with gateway.open_line(DOLLAR, ear) as line, client_of(line) as client:
        tasks = [asyncio.create_task(create(client, max_tokens=10, stream=number % 3 > 0)) for number in range(30)]
        for number, task in enumerate(tasks):
            await asyncio.sleep(0.002)
            if number % 7 == 3:
                task.cancel()
        await asyncio.wait(tasks)
    assert sorted(call.id for call in ear.intents) == sorted(call.id for call, _ in ear.ends)
    assert len({call.id for call in ear.intents}) == len(ear.intents)


async def test_retried(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """Refusals that pass are tried again within one call; the caller and the budget see one."""
    messages_server.play(rate_limited("0.01"), overloaded(), Refusal(503, "api_error"), Reply())
    await create(client)
    assert len(messages_server.requests) == 4
    assert (len(ear.intents), ear.kinds.count(Kind.WAITING), ear.used.ending) == (1, 3, CallEnding.COMPLETE)


async def test_retry_storm(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """Tries are bounded; when all were refused, the caller hears the provider's last word and nothing is booked."""
    messages_server.answering(lambda _: rate_limited("0"))
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        await create(client)
    assert len(messages_server.requests) == QUICK.tries
    assert (ear.used.ending, ear.used.spent) == (CallEnding.FAILED, NOTHING)


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_not_retried(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener, status: int) -> None:
    """What is wrong with the request itself is told at once, in the provider's own words."""
    messages_server.answering(lambda _: Refusal(status, "invalid_request_error", "its own words"))
    with pytest.raises(anthropic.APIStatusError, match="its own words") as error:
        await create(client)
    assert error.value.status_code == status
    assert len(messages_server.requests) == 1
    assert (ear.used.ending, ear.used.spent) == (CallEnding.FAILED, NOTHING)


async def test_no_connection(gateway: Gateway, ear: Listener) -> None:
    """Where nobody listens, it is tried again and then said; nothing is booked."""
    upstream = Upstream("http://127.0.0.1:9", SecretStr("k"), QUICK)
    async with Gateway(upstream, PRICES) as nowhere, nowhere.open_line(DOLLAR, ear) as line:
        with pytest.raises(anthropic.InternalServerError, match="cannot be reached"):
            await create(client_of(line))
    assert (ear.used.ending, ear.used.spent, ear.kinds.count(Kind.WAITING)) == (CallEnding.FAILED, NOTHING, 3)


async def test_lost_before_the_first_byte(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener
) -> None:
    """A try that went out and was lost is booked at its worst case; the next is a call of its own."""
    messages_server.play(Reply(cut_after=0), Reply())
    assert (await create(client)).stop_reason == "end_turn"
    assert [used.ending for _, used in ear.ends] == [CallEnding.CUT, CallEnding.COMPLETE]
    (lost, booked), (again, _) = ear.ends
    assert booked.spent == lost.worst
    assert lost.id != again.id


async def test_always_lost(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """Who loses every try is told so after a few, and each was booked."""
    messages_server.answering(lambda _: Reply(cut_after=0))
    with pytest.raises(anthropic.InternalServerError, match=r"broke off|no answer"):
        await create(client)
    assert len(messages_server.requests) == len(ear.ends) == 3


async def test_cut_in_the_middle(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """After the first byte nothing is tried again: the stream breaks off here too, and the worst case is booked."""
    messages_server.play(Reply([Text("word " * 40)], cut_after=6), Reply())
    heard: list[str] = []
    with pytest.raises(Exception, match="broke off"):
        await listen(client, heard)
    assert "content_block_delta" in heard
    assert len(messages_server.requests) == 1
    assert (ear.used.ending, ear.used.spent) == (CallEnding.CUT, ear.intents[0].worst)
    assert ear.used.tokens.total == ear.used.spent.tokens
    assert ear.kinds[-1] is Kind.CUT


@pytest.mark.parametrize("part", [4, 100], ids=["all of it", "a stand-in"])
async def test_cut_after_a_first_word_on_usage(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener, part: int
) -> None:
    """The input that the provider counted at first is booked at its dearest price, and all output that was asked for.
    A count that cannot be all of it is not believed.
    """
    large = {**ASKED, "messages": [{"role": "user", "content": "many words " * 4000}]}
    counted = asked(**large).given // part
    messages_server.play(
        Reply([Text("word " * 40)], usage_first={"input_tokens": counted, "output_tokens": 1}, cut_after=6)
    )

    async def ask() -> None:
        async with client.messages.stream(**large) as stream:
            await stream.until_done()

    with pytest.raises(Exception, match="broke off"):
        await ask()
    worst = Spent(microdollars=counted + 5000, tokens=counted + 1000) if part == 4 else ear.intents[0].worst
    assert (ear.used.ending, ear.used.spent) == (CallEnding.CUT, worst)
    assert ear.used.tokens.total == ear.used.spent.tokens


async def test_cut_without_a_stream(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """Who wanted a whole message gets none that is half: a lost one is asked for again, as a call of its own."""
    messages_server.play(Reply([Text("word " * 40)], cut_after=6), Reply())
    assert (await create(client)).content[0].text == "Hello."
    assert [used.ending for _, used in ear.ends] == [CallEnding.CUT, CallEnding.COMPLETE]


async def test_error_in_the_stream(messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener) -> None:
    """An error in the middle is handed on as it is; what was said before may be billed."""
    messages_server.play(Reply([Text("word " * 40)], error_after=6), Reply([Text("word " * 40)], error_after=6))
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await listen(client, [])
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as whole:
        await create(client)
    assert whole.value.status_code == 529
    assert [used.ending for _, used in ear.ends] == [CallEnding.CUT, CallEnding.CUT]


async def test_error_instead_of_a_stream(
    messages_server: MessagesServer, client: AsyncAnthropic, ear: Listener
) -> None:
    """An error before any message is a refusal: nothing is booked."""
    messages_server.play(Reply(error_after=0))
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await create(client)
    assert (ear.used.ending, ear.used.spent) == (CallEnding.FAILED, NOTHING)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(usage={}),
        Reply(usage={"output_tokens": 10**12}),
        Reply(usage_first={"input_tokens": 9, "output_tokens": 50}, usage={"output_tokens": 2}),
        Raw([b"event: message_start\ndata: {\n\n", b'event: message_stop\ndata: {"type": "message_stop"}\n\n']),
    ],
)
async def test_wrong_usage(messages_server: MessagesServer, line: OpenLine, ear: Listener, reply: Any) -> None:
    """Usage that is missing, absurd, goes down or cannot be read leaves the worst case, and the stream as it was."""
    messages_server.play(reply)
    assert (await raw(line, {"stream": True}))[0] == 200
    assert (ear.used.ending, ear.used.spent) == (CallEnding.CUT, ear.intents[0].worst)


@pytest.mark.parametrize("hang", list(Hang))
async def test_hanging_and_hung_up(
    messages_server: MessagesServer, line: OpenLine, client: AsyncAnthropic, ear: Listener, hang: Hang
) -> None:
    """Who asks may hang up at any time: the provider is hung up on, and the call is booked at its worst case."""
    messages_server.play(Reply([Text("word " * 40)], hang=hang))
    asking = asyncio.create_task(listen(client, []))
    await until(lambda: bool(messages_server.requests))
    if hang is not Hang.HEADERS:
        await until(lambda: Kind.STARTED in ear.kinds)
    asking.cancel()
    await asyncio.wait([asking])
    assert (ear.used.ending, ear.used.spent) == (CallEnding.CUT, ear.intents[0].worst)
    await until(lambda: messages_server.requests[0].gone)
    assert line.account.held == NOTHING


async def test_closing_the_line_ends_what_is_in_flight(
    gateway: Gateway, messages_server: MessagesServer, ear: Listener
) -> None:
    """When a line has been left, all its calls have ended and were told; those who waited are refused."""
    messages_server.answering(lambda _: Reply(hang=Hang.FIRST))
    one = asked().worst.microdollars
    async with gateway.open_line(replace(DOLLAR, microdollars=3 * one), ear) as line:
        assert isinstance(line, OpenLine)
        tasks = [asyncio.create_task(raw(line, {"stream": True})) for _ in range(5)]
        await until(lambda: ear.kinds.count(Kind.STARTED) == 3 and ear.kinds.count(Kind.WAITING) == 2)
    assert [used.ending for _, used in ear.ends] == [CallEnding.CUT] * 3
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(result, asgi.CutShort) for result in results) == 3
    assert [result[0] for result in results if isinstance(result, tuple)] == [401, 401]


async def test_hung_up_while_waiting_for_money(
    gateway: Gateway, messages_server: MessagesServer, ear: Listener
) -> None:
    """Who hangs up while it waits leaves no trace but a signal, and the next one is served."""
    messages_server.play(Reply(hang=Hang.FIRST), Reply())
    async with gateway.open_line(replace(DOLLAR, microdollars=asked().worst.microdollars + 5), ear) as line:
        assert isinstance(line, OpenLine)
        first = asyncio.create_task(raw(line))
        await until(lambda: Kind.STARTED in ear.kinds)
        second = asyncio.create_task(raw(line, {"max_tokens": 100}))
        third = asyncio.create_task(raw(line, {"max_tokens": 100}))
        await until(lambda: ear.kinds.count(Kind.WAITING) == 2)
        second.cancel()
        await asyncio.wait([second])
        messages_server.release()
        assert (await first)[0] == (await third)[0] == 200
    assert len(messages_server.requests) == len(ear.ends) == 2


async def test_disconnect_of_an_asgi_server(messages_server: MessagesServer, line: OpenLine, ear: Listener) -> None:
    """A server that says that the client is gone is believed, also while nothing flows."""
    messages_server.play(Reply(hang=Hang.HEADERS))
    body = json.dumps(ASKED).encode()
    said = [{"type": "http.request", "body": body[:9], "more_body": True}, {"type": "http.request", "body": body[9:]}]

    async def receive() -> Any:
        if said:
            return said.pop(0)
        await until(lambda: bool(messages_server.requests))
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there to be told")

    headers = [(b"x-api-key", line.token.encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": headers, "query_string": b""}
    await line.app(scope, receive, send)
    assert ear.used.ending is CallEnding.CUT


async def test_too_many_open(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """A line has a cap on what is open at once."""
    messages_server.answering(lambda _: Reply(hang=Hang.FIRST))
    async with gateway.open_line(replace(DOLLAR, microdollars=asked().worst.microdollars), ear) as line:
        assert isinstance(line, OpenLine)
        tasks = [asyncio.create_task(raw(line)) for _ in range(70)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        assert {task.result()[0] for task in done} == {429}
        messages_server.release()
        results = await asyncio.gather(*tasks)
    assert [status for status, _ in results].count(429) == 6


async def test_redirects_are_not_followed(messages_server: MessagesServer, client: AsyncAnthropic) -> None:
    """A provider that points elsewhere is not followed: the key goes nowhere else."""
    messages_server.play(Raw([b""], 307, {"location": f"{messages_server.url}/v1/messages"}))
    with pytest.raises(anthropic.InternalServerError, match="status 307"):
        await create(client)
    assert len(messages_server.requests) == 1
