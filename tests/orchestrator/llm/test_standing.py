"""When the provider is given up: for what it is, never for what a single request brought about."""

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.model_use import CallEnding, Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm import asgi
from orchestrator.llm.allowance import Call
from orchestrator.llm.line import Line
from tests.messages import Raw, Refusal, Reply, Step, Text
from tests.orchestrator.llm.conftest import DOLLAR, Desk
from tests.orchestrator.llm.hearing import ASKED, MODEL, asked

WORDS = "Your credit balance is too low to access the Anthropic API."
HTML = {"content-type": "text/html"}


async def post(line: Line, **fields: Any) -> int:
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
async def test_more_than_a_request_can_hold(desk: Desk, usage: dict[str, Any], cost: int, said: str) -> None:
    """What the provider says beyond our bound is booked, no less than the worst case, and it is asked no more."""
    desk.server.answering(lambda _: counting(**usage))
    few = {"max_tokens": 20}
    async with desk.gateway.open_line(replace(DOLLAR, microdollars=5000), desk.ear) as line:
        assert [await post(line, **few) for _ in range(3)] == [200, 401, 401]
    worst, used = asked(stream=True, **few).worst, desk.ear.used
    assert (used.ending, used.spent.microdollars) == (CallEnding.CUT, max(worst.microdollars, cost))
    assert used.tokens.total == used.spent.tokens >= worst.tokens
    if "input_tokens" in usage:
        assert used.tokens == Tokens(input=400_000, output=10), "as they were told"
    told = str(desk.gateway.unusable)
    assert told.startswith("the provider counts more than a request can hold: ")
    assert said in told
    assert told.endswith("; check api_url and prices")


@pytest.mark.parametrize("count", [-1, 1.5, "7", True, 10**12])
async def test_counts_that_can_not_be(desk: Desk, count: Any) -> None:
    """What is no count at all is not believed: the worst case is booked, and nothing more is asked."""
    desk.server.play(counting(input_tokens=count))
    assert [await post(desk.line), await post(desk.line)] == [200, 401]
    assert desk.ear.used.spent == desk.ear.intents[0].worst
    assert "usage cannot be true: input is no count" in str(desk.gateway.unusable)


async def test_a_little_too_much_output(desk: Desk) -> None:
    """A few tokens more than a very small max_tokens cost what was held: who provokes that ends nothing."""
    desk.server.play(Reply(usage_first={"input_tokens": 9, "output_tokens": 8}, usage={"output_tokens": 8}))
    assert await post(desk.line, max_tokens=1) == 200
    assert desk.gateway.unusable is None


async def test_who_waits_is_not_sent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits while the provider is found unusable is not forwarded, and costs nothing."""

    async def gone(call: Call) -> None:
        desk.line.standing.found(f"gone before {call.id}")

    monkeypatch.setattr(desk.ear, "intended", gone)
    assert await post(desk.line) == 401
    assert desk.server.requests == []
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.FAILED, Spent())


@pytest.mark.parametrize(
    "steps",
    [
        [Refusal(400, "invalid_request_error", f"tool_choice: Input tag '{WORDS}' does not match any")],
        [Refusal(400, "another_error", WORDS)],
        [Refusal(403, "permission_error", "this beta is not for you")],
        [Refusal(403, "forbidden", MODEL)],
        [Refusal(404, "not_found_error", "no such thing")],
        [Refusal(405, "invalid_request_error", "no")],
        [Raw([b"<html>"], 403, HTML)],
        [Raw([b"<html>"], 413, HTML)],
        *([Reply(), Raw([b"<html>"], status, HTML)] for status in (301, 307, 404, 405)),
        [Refusal(400, "invalid_request_error", "no"), Raw([b"<html>"], 404, HTML)],
    ],
)
async def test_one_request_ends_no_campaign(desk: Desk, steps: list[Step]) -> None:
    """What a request brings about, be it the first of all and in words of the agent's own, is told, no more; nor is an
    address that has spoken the API once given up for an answer outside of it.
    """
    desk.server.play(*steps, Reply([Text("well")]))
    statuses = [await post(desk.line) for _ in steps]
    assert statuses[-1] >= 400
    assert desk.gateway.unusable is None
    assert await post(desk.line) == 200
