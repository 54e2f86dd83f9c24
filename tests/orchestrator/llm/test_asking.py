"""The orchestrator's own calls: one answer, or an error that says whose fault it was."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.model_use import Tokens
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.line import Answer, Line, NoAnswer, Unusable
from orchestrator.llm.open_line import OpenLine
from orchestrator.watch.signals import Hold, Kind
from tests.messages import (
    Block,
    Hang,
    MessagesServer,
    Raw,
    Refusal,
    Reply,
    Text,
    Thinking,
    overloaded,
    rate_limited,
    until,
)
from tests.orchestrator.llm.conftest import DOLLAR
from tests.orchestrator.llm.hearing import MODEL, Listener, asked


async def ask(line: Line, **more: Any) -> Answer:
    fields: dict[str, Any] = {
        "system": ["Be brief."],
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1000,
    }
    return await line.ask(**{**fields, **more})


async def test_answer(messages_server: MessagesServer, line: OpenLine) -> None:
    """All text of an answer, without its thoughts, with what it took."""
    usage = {"input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}
    blocks: list[Block] = [Thinking("hm"), Text("One. "), Text("Two.")]
    messages_server.play(Reply(blocks, usage_first=usage, usage={"output_tokens": 40}, stop="max_tokens"))
    tokens = Tokens(input=7, cache_read=5, cache_write=3, output=40)
    assert await ask(line, system=["Be brief.", "Now."]) == Answer("One. Two.", MODEL, "max_tokens", tokens)


async def test_long_answers_need_no_care(messages_server: MessagesServer, line: OpenLine) -> None:
    """The client refuses long answers that are not streamed; ours are always streamed."""
    messages_server.play(Reply())
    assert (await ask(line, max_tokens=64_000)).text == "Hello."


async def test_system_is_cached(messages_server: MessagesServer, line: OpenLine) -> None:
    """All parts of the system prompt but the last are marked for the cache, no more than the API takes."""
    messages_server.answering(lambda _: Reply())
    await ask(line, system=[str(number) for number in range(7)])
    marked = [block["text"] for block in messages_server.bodies[0]["system"] if "cache_control" in block]
    assert marked == ["2", "3", "4", "5"]
    await ask(line, system=[])
    assert "system" not in messages_server.bodies[1]


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        (MODEL, {"type": "enabled", "budget_tokens": 2000}),
        ("claude-sonnet-5-5", {"type": "adaptive"}),
        ("claude-3-5-haiku-latest", None),
    ],
)
@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
async def test_thinking(
    gateway: Gateway, messages_server: MessagesServer, ear: Listener, model: str, wanted: Any
) -> None:
    """A model is asked to think in the way that it knows, and not at all where it knows none."""
    messages_server.play(Reply())
    async with gateway.open_line(replace(DOLLAR, models=(model,)), ear) as line:
        await ask(line, thinking=2000, max_tokens=4000)
    assert messages_server.bodies[0].get("thinking") == wanted


@pytest.mark.parametrize(
    ("step", "charged", "said"),
    [
        (Refusal(400, "invalid_request_error", "prompt is too long"), True, "prompt is too long"),
        (overloaded(), False, "Overloaded"),
        (rate_limited("0"), False, "slow down"),
        (Refusal(500, "api_error", "oops"), False, "oops"),
        (Raw([b"<html>"], 502, {"content-type": "text/html"}), False, "status 502"),
        (Reply(cut_after=0), False, "broke off"),
        (Reply([Text("word " * 40)], cut_after=5), False, "no answer came"),
        (Reply([Text("word " * 40)], error_after=5), False, "Overloaded"),
        (Raw([b"event: message_start\ndata: {\n\n"]), False, "no answer came"),
        (Raw([b"nothing at all"]), False, "no answer came"),
    ],
)
async def test_whose_fault(
    messages_server: MessagesServer, line: OpenLine, step: Any, charged: bool, said: str
) -> None:
    """What the request itself brought about is charged; what the provider or the line did is not. One line each."""
    messages_server.answering(lambda _: step)
    with pytest.raises(NoAnswer, match=said) as error:
        await ask(line)
    assert error.value.charged is charged
    assert "\n" not in str(error.value)


async def test_allowance_used_up(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """An allowance that is used up is charged: it was the attempt's own. One that never sufficed is not."""
    async with gateway.open_line(replace(DOLLAR, microdollars=5_000), ear) as line:
        with pytest.raises(NoAnswer, match=r"raise model.usd above \$0.0072") as error:
            await ask(line)
        assert not error.value.charged
    async with gateway.open_line(replace(DOLLAR, microdollars=0, begun=True), ear) as line:
        with pytest.raises(NoAnswer, match=r"\$0.0000 of the allowance are left") as error:
            await ask(line)
    assert error.value.charged
    assert messages_server.requests == []


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Refusal(401, "authentication_error", "invalid x-api-key"), "refuses the key"),
        (Refusal(403, "permission_error", f"no access to {MODEL}"), f"does not allow the model {MODEL}"),
        (Refusal(402, "billing_error", "no"), "no credit"),
        (Refusal(400, "invalid_request_error", "Your credit balance is too low to access the API"), "no credit"),
        (Refusal(404, "not_found_error", f"model: {MODEL}"), f"does not know the model {MODEL}"),
        (Raw([b"<html>"], 404, {"content-type": "text/html"}), "no Messages API at api_url"),
        (Raw([b""], 308, {"location": "https://elsewhere.example"}), "answers with status 308"),
    ],
)
async def test_unusable(
    gateway: Gateway, messages_server: MessagesServer, line: OpenLine, step: Any, said: str
) -> None:
    """A provider that takes nothing from us is said once and for all: nobody is asked again."""
    messages_server.play(step, Reply())
    assert gateway.unusable is None
    for _ in range(2):
        with pytest.raises(Unusable, match=said):
            await ask(line)
    assert said in str(gateway.unusable)
    assert len(messages_server.requests) == 1


async def test_waits_for_our_own_limit(gateway: Gateway, messages_server: MessagesServer, ear: Listener) -> None:
    """A limit of our own on requests a minute makes our own calls wait, not fail; the watch is told for how long."""
    messages_server.answering(lambda _: Reply())
    async with gateway.open_line(replace(DOLLAR, per_minute=1), ear) as line:
        await ask(line)
        waiting = asyncio.create_task(ask(line))
        await until(lambda: Kind.HELD in ear.kinds)
        assert not waiting.done()
        told = [(signal.kind, signal.hold) for signal in ear.signals if signal.kind in (Kind.HELD, Kind.RELEASED)]
        assert told == [(Kind.HELD, Hold.QUEUED)]
        waiting.cancel()
        await asyncio.wait([waiting])
    assert ear.signals[-1].kind is Kind.RELEASED
    assert len(messages_server.requests) == 1


async def test_cancelled(messages_server: MessagesServer, line: OpenLine, ear: Listener) -> None:
    """Who gives up on an answer leaves no call open."""
    messages_server.play(Reply(hang=Hang.MIDDLE))
    asking = asyncio.create_task(ask(line))
    await until(lambda: Kind.STARTED in ear.kinds)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(ear.ends) == len(ear.intents) == 1
    assert ear.used.spent == ear.intents[0].worst
    assert asked().model == ear.intents[0].model


async def test_a_temperature_is_handed_on(messages_server: MessagesServer, line: OpenLine) -> None:
    """Where one is said; else the request has none."""
    messages_server.play(Reply(), Reply())
    await ask(line, temperature=0.4)
    await ask(line)
    assert [body.get("temperature") for body in messages_server.bodies] == [0.4, None]
