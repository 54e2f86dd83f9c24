"""The orchestrator's own calls: one answer, or an error that says whose fault it was."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.model_use import Tokens
from orchestrator.llm.line import Answer, Line, NoAnswer, Unusable
from orchestrator.watch.signals import Hold, Kind
from tests.messages import Block, Hang, Raw, Refusal, Reply, Step, Text, Thinking, overloaded, rate_limited, until
from tests.orchestrator.llm.conftest import DOLLAR, Desk
from tests.orchestrator.llm.hearing import MODEL

HTML = {"content-type": "text/html"}


async def ask(line: Line, **more: Any) -> Answer:
    fields: dict[str, Any] = {
        "system": ["Be brief."],
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1000,
    }
    return await line.ask(**{**fields, **more})


async def test_answer(desk: Desk) -> None:
    """All text without its thoughts, with what it took; long answers, which the client refuses unstreamed, too."""
    usage = {"input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}
    blocks: list[Block] = [Thinking("hm"), Text("One. "), Text("Two.")]
    desk.server.play(Reply(blocks, usage_first=usage, usage={"output_tokens": 40}, stop="max_tokens"))
    tokens = Tokens(input=7, cache_read=5, cache_write=3, output=40)
    told = await ask(desk.line, system=["Be brief.", "Now."], max_tokens=64_000)
    assert told == Answer("One. Two.", MODEL, "max_tokens", tokens)


async def test_what_is_sent(desk: Desk) -> None:
    """All parts of the system prompt but the last are cached, four at most; a temperature is sent if one is said."""
    desk.server.answering(lambda _: Reply())
    await ask(desk.line, system=[str(number) for number in range(7)], temperature=0.4)
    await ask(desk.line, system=[])
    first, second = desk.server.bodies
    assert [it["text"] for it in first["system"] if "cache_control" in it] == ["2", "3", "4", "5"]
    assert (first["temperature"], {"system", "temperature"} & second.keys()) == (0.4, set())


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (MODEL, {"type": "enabled", "budget_tokens": 2000}),
        ("claude-sonnet-5-5", {"type": "adaptive"}),
        ("claude-3-5-haiku-latest", None),
    ],
)
@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
async def test_thinking(desk: Desk, model: str, wanted: Any) -> None:
    """A model is asked to think in the way that it knows, and not at all where it knows none."""
    desk.server.play(Reply())
    async with desk.gateway.open_line(replace(DOLLAR, models=(model,)), desk.ear) as line:
        await ask(line, thinking=2000, max_tokens=4000)
    assert desk.server.bodies[0].get("thinking") == wanted


@pytest.mark.parametrize(
    ("step", "charged", "said"),
    [
        (Refusal(400, "invalid_request_error", "prompt is too long"), True, "prompt is too long"),
        (overloaded(), False, "Overloaded"),
        (rate_limited("0"), False, "slow down"),
        (Refusal(500, "api_error", "oops"), False, "oops"),
        (Raw([b"<html>"], 502, HTML), False, "status 502"),
        (Reply(cut_after=0), False, "broke off"),
        (Reply([Text("word " * 40)], cut_after=5), False, "no answer came"),
        (Reply([Text("word " * 40)], error_after=5), False, "Overloaded"),
        (Raw([b"event: message_start\ndata: {\n\n"]), False, "no answer came"),
        (Raw([b"nothing at all"]), False, "no answer came"),
    ],
)
async def test_whose_fault(desk: Desk, step: Step, charged: bool, said: str) -> None:
    """What the request itself brought about is charged; what the provider or the line did is not. One line each."""
    desk.server.answering(lambda _: step)
    with pytest.raises(NoAnswer, match=said) as error:
        await ask(desk.line)
    assert error.value.charged is charged
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("allowance", "charged", "said"),
    [
        (replace(DOLLAR, microdollars=0, begun=True), True, r"\$0.0000 of the allowance are left"),
        (replace(DOLLAR, microdollars=5_000), False, r"raise model.usd above \$0.0072"),
    ],
)
async def test_allowance_used_up(desk: Desk, allowance: Any, charged: bool, said: str) -> None:
    """An allowance that is used up is charged: it was the attempt's own. One that never sufficed is not."""
    async with desk.gateway.open_line(allowance, desk.ear) as line:
        with pytest.raises(NoAnswer, match=said) as error:
            await ask(line)
    assert error.value.charged is charged
    assert desk.server.requests == []


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Refusal(401, "authentication_error", "invalid x-api-key"), "refuses the key"),
        (Refusal(403, "permission_error", f"no access to {MODEL}"), f"does not allow the model {MODEL}"),
        (Refusal(402, "billing_error", "no"), "no credit"),
        (Refusal(403, "billing_error", "pay"), "no credit"),
        (Refusal(400, "invalid_request_error", "Your credit balance is too low to access the API"), "no credit"),
        (Refusal(404, "not_found_error", f"model: {MODEL}"), f"does not know the model {MODEL}"),
        (Raw([b"<html>"], 404, HTML), "no Messages API at api_url"),
        (Raw([b""], 308, {"location": "https://elsewhere.example"}), "answers with status 308"),
    ],
)
async def test_unusable(desk: Desk, step: Step, said: str) -> None:
    """A provider that takes nothing from us is said once and for all: nobody is asked again."""
    desk.server.play(step, Reply())
    assert desk.gateway.unusable is None
    for _ in range(2):
        with pytest.raises(Unusable, match=said):
            await ask(desk.line)
    assert said in str(desk.gateway.unusable)
    assert len(desk.server.requests) == 1


async def test_waits_for_our_own_limit(desk: Desk) -> None:
    """A limit of our own on requests a minute makes our own calls wait, not fail; the watch is told for how long."""
    desk.server.answering(lambda _: Reply())
    async with desk.gateway.open_line(replace(DOLLAR, per_minute=1), desk.ear) as line:
        await ask(line)
        waiting = asyncio.create_task(ask(line))
        await until(lambda: Kind.HELD in desk.ear.kinds)
        assert not waiting.done()
        told = [(it.kind, it.hold) for it in desk.ear.signals if it.kind in (Kind.HELD, Kind.RELEASED)]
        assert told == [(Kind.HELD, Hold.QUEUED)]
        waiting.cancel()
        await asyncio.wait([waiting])
    assert desk.ear.signals[-1].kind is Kind.RELEASED
    assert len(desk.server.requests) == 1


async def test_cancelled(desk: Desk) -> None:
    """Who gives up on an answer leaves no call open."""
    desk.server.play(Reply(hang=Hang.MIDDLE))
    asking = asyncio.create_task(ask(desk.line))
    await until(lambda: Kind.STARTED in desk.ear.kinds)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(desk.ear.ends) == len(desk.ear.intents) == 1
    assert desk.ear.used.spent == desk.ear.intents[0].worst
