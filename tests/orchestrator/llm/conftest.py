"""A gateway in front of the test server, and a line with a dollar to spend."""

from collections.abc import AsyncIterator

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


@pytest.fixture
def ear() -> Listener:
    return Listener()


@pytest.fixture
async def gateway(messages_server: MessagesServer) -> AsyncIterator[Gateway]:
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key), QUICK)
    async with Gateway(upstream, PRICES) as gateway:
        yield gateway


@pytest.fixture
async def line(gateway: Gateway, ear: Listener) -> AsyncIterator[OpenLine]:
    async with gateway.open_line(DOLLAR, ear) as line:
        assert isinstance(line, OpenLine)
        yield line


@pytest.fixture
async def client(line: OpenLine) -> AsyncIterator[AsyncAnthropic]:
    """The genuine client with the line's token; it does not try again by itself."""
    async with client_of(line) as client:
        yield client
