"""A gateway in front of the test server, and a line with a dollar to spend."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from anthropic import AsyncAnthropic
from pydantic import SecretStr

from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.open_line import OpenLine
from orchestrator.llm.upstream import Patience, Upstream
from tests.messages import MessagesServer
from tests.orchestrator.llm.hearing import MODEL, PRICES, Listener

QUICK = Patience(tries=4, first_wait_s=0.01, longest_wait_s=0.05)
DOLLAR = Allowance(ModelRole.USER, (MODEL, "claude-sonnet-4-5"), 1_000_000)


@dataclass
class Desk:
    """All of it together. The client is the genuine one with the line's token; it does not try again by itself."""

    server: MessagesServer
    gateway: Gateway
    line: OpenLine
    ear: Listener
    client: AsyncAnthropic


@pytest.fixture
def ear() -> Listener:
    return Listener()


@pytest.fixture
async def desk(messages_server: MessagesServer, ear: Listener) -> AsyncIterator[Desk]:
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key), QUICK)
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        assert isinstance(line, OpenLine)
        async with client_of(line) as client:
            yield Desk(messages_server, gateway, line, ear, client)
