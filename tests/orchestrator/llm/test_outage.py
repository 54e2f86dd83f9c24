"""The line to the model's provider breaks, stalls or is slow: what was not sent costs nothing, and it goes on (T86)."""

import asyncio
from collections.abc import Iterator

import anthropic
import pytest
from pydantic import SecretStr

from orchestrator.domain.model_use import CallEnding
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.upstream import Patience, Upstream
from orchestrator.watch.signals import Kind
from tests.fault_proxy import FaultProxy
from tests.messages import MessagesServer, Reply, Text, until
from tests.orchestrator.llm.conftest import DOLLAR
from tests.orchestrator.llm.hearing import ASKED, PRICES, Listener

SHORT = Patience(first_wait_s=0.02, longest_wait_s=0.1)
LONG = Patience(tries=5000, first_wait_s=0.02, longest_wait_s=0.1)


@pytest.fixture
def line(messages_server: MessagesServer) -> Iterator[FaultProxy]:
    with FaultProxy(messages_server.url) as proxy:
        yield proxy


def through(line: FaultProxy, server: MessagesServer, patience: Patience = SHORT) -> Gateway:
    return Gateway(Upstream(line.url, SecretStr(server.key), patience), PRICES)


async def test_T86_a_provider_that_is_away_and_comes_back(
    messages_server: MessagesServer, line: FaultProxy, ear: Listener
) -> None:
    """The call waits as a hold, not as a stall, and is sent once."""
    messages_server.play(Reply([Text("well")]))
    line.cut()
    async with through(line, messages_server, LONG) as gateway, gateway.open_line(DOLLAR, ear) as open_line:
        asking = asyncio.create_task(client_of(open_line).messages.create(**ASKED))
        await until(lambda: Kind.WAITING in ear.kinds)
        line.heal()
        assert (await asking).content[0].text == "well"
    assert ear.used.ending is CallEnding.COMPLETE
    assert Kind.WAITING in ear.kinds
    assert len(messages_server.requests) == 1


async def test_T86_a_provider_that_stays_away(messages_server: MessagesServer, line: FaultProxy, ear: Listener) -> None:
    """Nothing was sent, so nothing is booked, and the next call after it is like any other."""
    messages_server.play(Reply([Text("well")]))
    line.cut()
    async with through(line, messages_server) as gateway, gateway.open_line(DOLLAR, ear) as open_line:
        with pytest.raises(anthropic.APIStatusError):
            await client_of(open_line).messages.create(**ASKED)
        assert (ear.used.ending, ear.used.spent.microdollars) == (CallEnding.FAILED, 0)
        line.heal()
        assert (await client_of(open_line).messages.create(**ASKED)).content[0].text == "well"


@pytest.mark.parametrize("slow", [False, True])
async def test_T86_a_silence_in_the_middle(
    messages_server: MessagesServer, line: FaultProxy, ear: Listener, slow: bool
) -> None:
    """A line that stalls and goes on, or is slow, loses nothing of an answer."""
    messages_server.play(Reply([Text("x" * 2000)]))
    line.slow(20_000) if slow else line.stall()
    async with through(line, messages_server) as gateway, gateway.open_line(DOLLAR, ear) as open_line:
        asking = asyncio.create_task(client_of(open_line).messages.create(**ASKED))
        if not slow:
            await until(lambda: Kind.REQUESTED in ear.kinds)
            await asyncio.sleep(0.1)  # in which an answer that was not held back would have come
            assert not asking.done()
            line.heal()
        assert (await asking).content[0].text == "x" * 2000
    assert ear.used.ending is CallEnding.COMPLETE
