"""How calls end, and what is booked of each: whole, refused, lost, cut, hung up on, or waiting for money."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from orchestrator.domain.model_use import CallEnding
from orchestrator.domain.records import Spent
from orchestrator.llm import asgi
from orchestrator.llm.asking import client_of
from orchestrator.llm.open_line import OpenLine
from orchestrator.watch.signals import Kind
from tests.messages import Hang, Raw, Refusal, Reply, Step, Text, overloaded, rate_limited, until
from tests.orchestrator.llm.conftest import DOLLAR, QUICK, Desk
from tests.orchestrator.llm.hearing import ASKED, asked
from tests.orchestrator.llm.test_gateway import create, nowhere, raw

NOTHING = Spent()
WORDS = [Text("word " * 40)]


async def listen(client: AsyncAnthropic, heard: list[str], **fields: Any) -> None:
    async for event in await create(client, stream=True, **fields):
        heard += [event.type]


async def test_parallel_calls_never_pass_the_allowance(desk: Desk) -> None:
    """Fifty at once that want as much as they can get: what is booked and what is open stay within the allowance.

    Each is answered, or refused for money; a provider that counts the output of each at its most changes nothing.
    """
    desk.server.answering(
        lambda request: Reply(first_s=0.005, usage={"output_tokens": request.body["max_tokens"]}, pings=0)
    )
    over: list[int] = []
    allowance = replace(DOLLAR, microdollars=120_000)
    async with desk.gateway.open_line(allowance, desk.ear) as line, client_of(line) as client:
        assert isinstance(line, OpenLine)
        watched = line.account

        async def seen(call: Any) -> None:
            over.append(watched.spent.microdollars + watched.held.microdollars)

        desk.ear.intended = seen  # type: ignore[method-assign]
        wanted = [1000, 3000, 16_000, 20_000, 999_999]
        calls = [listen(client, [], max_tokens=wanted[number % 5]) for number in range(25)]
        calls += [create(client, max_tokens=wanted[number % 5]) for number in range(25)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(error, anthropic.APIStatusError) and error.status_code == 402 for error in refused)
    assert 0 < len(desk.ear.ends) < 50
    assert max(over) <= 120_000
    assert sum(used.spent.microdollars for _, used in desk.ear.ends) <= 120_000
    assert Kind.WAITING in desk.ear.kinds


async def test_ends_are_exact(desk: Desk) -> None:
    """Every call that was intended has ended exactly once when its line is left, whatever happened to it."""
    refusal = Refusal(400, "invalid_request_error")
    steps: list[Step] = [Reply(), overloaded(), Reply(cut_after=4), Reply(usage={}), refusal]
    desk.server.answering(lambda _: steps[len(desk.server.requests) % 5])
    async with desk.gateway.open_line(DOLLAR, desk.ear) as line, client_of(line) as client:
        streams = [number % 3 > 0 for number in range(30)]
        tasks = [asyncio.create_task(create(client, max_tokens=10, stream=stream)) for stream in streams]
        for number, task in enumerate(tasks):
            await asyncio.sleep(0.002)
            if number % 7 == 3:
                task.cancel()
        await asyncio.wait(tasks)
    intended = [call.id for call in desk.ear.intents]
    assert sorted(intended) == sorted(call.id for call, _ in desk.ear.ends)
    assert len(set(intended)) == len(intended)


async def test_retried(desk: Desk) -> None:
    """Refusals that pass are tried again within one call; the caller and the budget see one."""
    desk.server.play(rate_limited("0.01"), overloaded(), Refusal(503, "api_error"), Reply())
    await create(desk.client)
    assert len(desk.server.requests) == 4
    assert (len(desk.ear.intents), desk.ear.kinds.count(Kind.WAITING)) == (1, 3)
    assert desk.ear.used.ending is CallEnding.COMPLETE


@pytest.mark.parametrize(
    ("step", "said", "tries"),
    [
        (rate_limited("0"), "slow down", QUICK.tries),
        (Reply(error_after=0), "Overloaded", 1),
        *((Refusal(it, "invalid_request_error", "its own words"), "its own words", 1) for it in (400, 404, 413, 422)),
    ],
)
async def test_refused(desk: Desk, step: Step, said: str, tries: int) -> None:
    """Tries are bounded; what is wrong with a request is told at once, in the provider's words. Nothing is booked."""
    desk.server.answering(lambda _: step)
    with pytest.raises(anthropic.APIStatusError, match=said) as error:
        await create(desk.client)
    assert not isinstance(step, Refusal) or error.value.status_code == step.status
    assert len(desk.server.requests) == tries
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.FAILED, NOTHING)


async def test_no_connection(desk: Desk) -> None:
    """Where nobody listens, it is tried again and then said; nothing is booked."""
    async with nowhere() as gateway, gateway.open_line(DOLLAR, desk.ear) as line:
        with pytest.raises(anthropic.InternalServerError, match="cannot be reached"):
            await create(client_of(line))
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.FAILED, NOTHING)
    assert desk.ear.kinds.count(Kind.WAITING) == 3


@pytest.mark.parametrize("lost", [Reply(cut_after=0), Reply(WORDS, cut_after=6)])
async def test_lost(desk: Desk, lost: Reply) -> None:
    """A try that went out and was lost before the first byte, or before a whole message, is booked at its worst case;
    the next is a call of its own. Who loses every try is told so after a few.
    """
    desk.server.play(lost, Reply())
    assert (await create(desk.client)).content[0].text == "Hello."
    assert [used.ending for _, used in desk.ear.ends] == [CallEnding.CUT, CallEnding.COMPLETE]
    (call, booked), (again, _) = desk.ear.ends
    assert booked.spent == call.worst
    assert call.id != again.id
    desk.server.answering(lambda _: lost)
    with pytest.raises(anthropic.InternalServerError, match=r"broke off|no answer"):
        await create(desk.client)
    assert len(desk.server.requests) == len(desk.ear.ends) == 2 + 3


async def test_cut_in_the_middle(desk: Desk) -> None:
    """After the first byte nothing is tried again: the stream breaks off here too, and the worst case is booked."""
    desk.server.play(Reply(WORDS, cut_after=6), Reply())
    heard: list[str] = []
    with pytest.raises(Exception, match="broke off"):
        await listen(desk.client, heard)
    assert "content_block_delta" in heard
    assert len(desk.server.requests) == 1
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.CUT, desk.ear.intents[0].worst)
    assert desk.ear.used.tokens.total == desk.ear.used.spent.tokens
    assert desk.ear.kinds[-1] is Kind.CUT


@pytest.mark.parametrize("part", [4, 100], ids=["all of it", "a stand-in"])
async def test_cut_after_a_first_word_on_usage(desk: Desk, part: int) -> None:
    """The input that the provider counted at first is booked at its dearest price, and all output that was asked for.
    A count that cannot be all of it is not believed.
    """
    large = {"messages": [{"role": "user", "content": "many words " * 4000}]}
    counted = asked(**large).given // part
    desk.server.play(Reply(WORDS, usage_first={"input_tokens": counted, "output_tokens": 1}, cut_after=6))
    with pytest.raises(Exception, match="broke off"):
        await listen(desk.client, [], **large)
    worst = Spent(microdollars=counted + 5000, tokens=counted + 1000) if part == 4 else desk.ear.intents[0].worst
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.CUT, worst)
    assert desk.ear.used.tokens.total == desk.ear.used.spent.tokens


async def test_error_in_the_stream(desk: Desk) -> None:
    """An error in the middle is handed on as it is; what was said before may be billed."""
    desk.server.answering(lambda _: Reply(WORDS, error_after=6))
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await listen(desk.client, [])
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as whole:
        await create(desk.client)
    assert whole.value.status_code == 529
    assert [used.ending for _, used in desk.ear.ends] == [CallEnding.CUT, CallEnding.CUT]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(usage={}),
        Reply(usage={"output_tokens": 10**12}),
        Reply(usage_first={"input_tokens": 9, "output_tokens": 50}, usage={"output_tokens": 2}),
        Raw([b"event: message_start\ndata: {\n\n", b'event: message_stop\ndata: {"type": "message_stop"}\n\n']),
    ],
)
async def test_wrong_usage(desk: Desk, reply: Step) -> None:
    """Usage that is missing, absurd, goes down or cannot be read leaves the worst case, and the stream as it was."""
    desk.server.play(reply)
    assert (await raw(desk.line, {"stream": True}))[0] == 200
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.CUT, desk.ear.intents[0].worst)


@pytest.mark.parametrize("hang", list(Hang))
async def test_hanging_and_hung_up(desk: Desk, hang: Hang) -> None:
    """Who asks may hang up at any time: the provider is hung up on, and the call is booked at its worst case."""
    desk.server.play(Reply(WORDS, hang=hang))
    asking = asyncio.create_task(listen(desk.client, []))
    await until(lambda: bool(desk.server.requests))
    if hang is not Hang.HEADERS:
        await until(lambda: Kind.STARTED in desk.ear.kinds)
    asking.cancel()
    await asyncio.wait([asking])
    assert (desk.ear.used.ending, desk.ear.used.spent) == (CallEnding.CUT, desk.ear.intents[0].worst)
    await until(lambda: desk.server.requests[0].gone)
    assert desk.line.account.held == NOTHING


async def test_closing_the_line_ends_what_is_in_flight(desk: Desk) -> None:
    """When a line has been left, all its calls have ended and were told; those who waited are refused."""
    desk.server.answering(lambda _: Reply(hang=Hang.FIRST))
    allowance, ear = replace(DOLLAR, microdollars=3 * asked().worst.microdollars), desk.ear
    async with desk.gateway.open_line(allowance, ear) as line:
        assert isinstance(line, OpenLine)
        tasks = [asyncio.create_task(raw(line, {"stream": True})) for _ in range(5)]
        await until(lambda: ear.kinds.count(Kind.STARTED) == 3 and ear.kinds.count(Kind.WAITING) == 2)
    assert [used.ending for _, used in ear.ends] == [CallEnding.CUT] * 3
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(result, asgi.CutShort) for result in results) == 3
    assert [result[0] for result in results if isinstance(result, tuple)] == [401, 401]


async def test_hung_up_while_waiting_for_money(desk: Desk) -> None:
    """Who hangs up while it waits leaves no trace but a signal, and the next one is served."""
    desk.server.play(Reply(hang=Hang.FIRST), Reply())
    allowance = replace(DOLLAR, microdollars=asked().worst.microdollars + 5)
    async with desk.gateway.open_line(allowance, desk.ear) as line:
        assert isinstance(line, OpenLine)
        first = asyncio.create_task(raw(line))
        await until(lambda: Kind.STARTED in desk.ear.kinds)
        second, third = (asyncio.create_task(raw(line, {"max_tokens": 100})) for _ in range(2))
        await until(lambda: desk.ear.kinds.count(Kind.WAITING) == 2)
        second.cancel()
        await asyncio.wait([second])
        desk.server.release()
        assert (await first)[0] == (await third)[0] == 200
    assert len(desk.server.requests) == len(desk.ear.ends) == 2


async def test_disconnect_of_an_asgi_server(desk: Desk) -> None:
    """A server that says that the client is gone is believed, also while nothing flows."""
    desk.server.play(Reply(hang=Hang.HEADERS))
    body = json.dumps(ASKED).encode()
    said = [{"type": "http.request", "body": body[:9], "more_body": True}, {"type": "http.request", "body": body[9:]}]

    async def receive() -> Any:
        if said:
            return said.pop(0)
        await until(lambda: bool(desk.server.requests))
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there to be told")

    headers = [(b"x-api-key", desk.line.token.encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": headers, "query_string": b""}
    await desk.line.app(scope, receive, send)
    assert desk.ear.used.ending is CallEnding.CUT


async def test_too_many_open(desk: Desk) -> None:
    """A line has a cap on what is open at once."""
    desk.server.answering(lambda _: Reply(hang=Hang.FIRST))
    allowance = replace(DOLLAR, microdollars=asked().worst.microdollars)
    async with desk.gateway.open_line(allowance, desk.ear) as line:
        assert isinstance(line, OpenLine)
        tasks = [asyncio.create_task(raw(line)) for _ in range(70)]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0)
        assert {task.result()[0] for task in done} == {429}
        desk.server.release()
        results = await asyncio.gather(*tasks)
    assert [status for status, _ in results].count(429) == 6
