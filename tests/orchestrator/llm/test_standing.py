"""When the provider is given up: for what it is, never for what a single request brought about."""

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.model_use import CallEnding, Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm import asgi
from orchestrator.llm.allowance import Call
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.open_line import OpenLine
from tests.messages import MessagesServer, Raw, Refusal, Reply, Step, Text
from tests.orchestrator.llm.conftest import DOLLAR
from tests.orchestrator.llm.hearing import ASKED, MODEL, Listener, asked

WORDS = "Your credit balance is too low to access the Anthropic API."
HTML = {"content-type": "text/html"}


async def post(line: OpenLine, **fields: Any) -> int:
    body = json.dumps({**ASKED, "stream": True, **fields}).encode()
    async with asgi.asked(line.app, "POST", "/v1/messages", {"x-api-key": line.token}, body) as answered:
        async for _ in answered.chunks:
            pass
        return answered.status


def counting(**usage: Any) -> Reply:
    return Reply(usage_first={"input_tokens": 0, "output_tokens": 1}, usage={"output_tokens": 10, **usage})


@pytest.mark.parametrize(
    ("usage", "cost", "said"),
    [
        ({"input_tokens": 400_000}, 400_050, "400000 tokens of input, which are more than were sent"),
        ({"output_tokens": 50_000}, 250_000, "50000 tokens of input and output"),
        (
            {"cache_creation_input_tokens": 2000, "cache_creation": {"ephemeral_1h_input_tokens": 2000}},
            4050,
            "2000 tokens written to the cache",
        ),
        ({"cache_creation_input_tokens": 2000}, 2550, "2000 tokens written to the cache"),
    ],
)
async def test_more_than_a_request_can_hold(
    gateway: Gateway, messages_server: MessagesServer, ear: Listener, usage: dict[str, Any], cost: int, said: str
) -> None:
    """What the provider says beyond our bound is booked, no less than the worst case, and it is asked no more."""
    messages_server.answering(lambda _: counting(**usage))
    few = {"max_tokens": 20}
    async with gateway.open_line(replace(DOLLAR, microdollars=5000), ear) as line:
        assert isinstance(line, OpenLine)
        assert [await post(line, **few) for _ in range(3)] == [200, 401, 401]
    worst = asked(stream=True, **few).worst
    assert (ear.used.ending, ear.used.spent.microdollars) == (CallEnding.CUT, max(worst.microdollars, cost))
    assert ear.used.tokens.total == ear.used.spent.tokens >= worst.tokens
    assert gateway.unusable == f"the provider counts more than a request can hold: {ear_said(gateway, said)}"


def ear_said(gateway: Gateway, said: str) -> str:
    told = str(gateway.unusable)
    assert said in told
    assert told.endswith("; check api_url and prices")
    return told.partition(": ")[2]


async def test_tokens_as_they_were_counted(gateway: Gateway, messages_server: MessagesServer, line: OpenLine) -> None:
    """Where more tokens are told than there can be, they are on record as they were told."""
    ear = line.ear
    assert isinstance(ear, Listener)
    messages_server.play(counting(input_tokens=400_000))
    await post(line)
    assert ear.used.tokens == Tokens(input=400_000, output=10)


@pytest.mark.parametrize("count", [-1, 1.5, "7", True, 10**12])
async def test_counts_that_can_not_be(
    gateway: Gateway, messages_server: MessagesServer, line: OpenLine, ear: Listener, count: Any
) -> None:
    """What is no count at all is not believed: the worst case is booked, and nothing more is asked."""
    messages_server.play(counting(input_tokens=count))
    assert [await post(line), await post(line)] == [200, 401]
    assert ear.used.spent == ear.intents[0].worst
    assert "usage cannot be true: input is no count" in str(gateway.unusable)


async def test_a_little_too_much_output(gateway: Gateway, messages_server: MessagesServer, line: OpenLine) -> None:
    """A few tokens more than a very small max_tokens cost what was held: who provokes that ends nothing."""
    messages_server.play(Reply(usage_first={"input_tokens": 9, "output_tokens": 8}, usage={"output_tokens": 8}))
    assert await post(line, max_tokens=1) == 200
    assert gateway.unusable is None


async def test_who_waits_is_not_sent(
    messages_server: MessagesServer, line: OpenLine, ear: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that waits while the provider is found unusable is not forwarded, and costs nothing."""

    async def gone(call: Call) -> None:
        line.standing.found(f"gone before {call.id}")

    monkeypatch.setattr(ear, "intended", gone)
    assert await post(line) == 401
    assert messages_server.requests == []
    assert (ear.used.ending, ear.used.spent) == (CallEnding.FAILED, Spent())


@pytest.mark.parametrize(
    "step",
    [
        Refusal(400, "invalid_request_error", f"tool_choice: Input tag '{WORDS}' does not match any"),
        Refusal(400, "another_error", WORDS),
        Refusal(403, "permission_error", "this beta is not for you"),
        Refusal(403, "forbidden", MODEL),
        Refusal(404, "not_found_error", "no such thing"),
        Refusal(405, "invalid_request_error", "no"),
        Raw([b"<html>"], 403, HTML),
        Raw([b"<html>"], 413, HTML),
    ],
)
async def test_one_request_ends_no_campaign(
    gateway: Gateway, messages_server: MessagesServer, line: OpenLine, step: Step
) -> None:
    """What a request brings about, be it the first of all and in words of the agent's own, is told, no more."""
    messages_server.play(step, Reply([Text("well")]))
    assert await post(line) >= 400
    assert gateway.unusable is None
    assert await post(line) == 200


@pytest.mark.parametrize("status", [301, 307, 404, 405])
@pytest.mark.parametrize("spoke", [Reply(), Refusal(400, "invalid_request_error", "no")])
async def test_odd_answers_of_a_known_provider(
    gateway: Gateway, messages_server: MessagesServer, line: OpenLine, status: int, spoke: Step
) -> None:
    """An address that has spoken the API once is not given up for an answer outside of it."""
    messages_server.play(spoke, Raw([b"<html>"], status, HTML), Reply())
    await post(line)
    assert await post(line) >= 400
    assert gateway.unusable is None
    assert await post(line) == 200


async def test_no_credit_in_any_status(gateway: Gateway, messages_server: MessagesServer, line: OpenLine) -> None:
    """The provider's own kind of error for an account without credit is believed whatever its status."""
    messages_server.play(Refusal(403, "billing_error", "pay"))
    assert await post(line) == 403
    assert "no credit" in str(gateway.unusable)
