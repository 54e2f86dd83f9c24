"""How long the provider is waited for, and what is asked of it again."""

import email.utils
import time

import anthropic
import pytest
from pydantic import SecretStr

from orchestrator.domain.model_use import CallEnding
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.upstream import Patience, Upstream, retry_after
from orchestrator.watch.signals import Kind
from tests.messages import Hang, MessagesServer, Refusal, Reply, Text, rate_limited
from tests.orchestrator.llm.conftest import DOLLAR
from tests.orchestrator.llm.hearing import ASKED, PRICES, Listener


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, parts of them and milliseconds are understood; what is none is as if nothing was said."""
    assert retry_after(headers) == seconds


def test_retry_after_a_date() -> None:
    """A date is the time until then."""
    assert 90 < (retry_after({"retry-after": email.utils.formatdate(time.time() + 100, usegmt=True)}) or 0) <= 100


async def test_a_long_wait_is_capped(messages_server: MessagesServer, ear: Listener) -> None:
    """A provider that asks for an hour is asked again sooner: who waits has a deadline of its own."""
    messages_server.play(rate_limited("3600"), Reply())
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key), Patience(longest_wait_s=0.01))
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        await client_of(line).messages.create(**ASKED)
    assert ear.kinds.count(Kind.WAITING) == 1


@pytest.mark.parametrize("hang", [Hang.HEADERS, Hang.FIRST])
async def test_silence_ends(messages_server: MessagesServer, ear: Listener, hang: Hang) -> None:
    """A provider that is silent for too long is given up: booked at the worst case, said as a time-out, not retried."""
    messages_server.answering(lambda _: Reply([Text("x" * 99)], hang=hang))
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key), Patience(idle_s=0.5))
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        with pytest.raises(anthropic.APIStatusError) as error:
            await client_of(line).messages.create(**ASKED)
    assert (error.value.status_code, error.value.type) == (504, "timeout_error")
    assert len(messages_server.requests) == 1
    assert ear.used.ending is CallEnding.CUT


async def test_told_not_to_try_again(messages_server: MessagesServer, ear: Listener) -> None:
    """A provider that says that another try is of no use is believed."""
    messages_server.play(Refusal(500, "api_error", "no use", {"x-should-retry": "false"}))
    upstream = Upstream(messages_server.url, SecretStr(messages_server.key))
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        with pytest.raises(anthropic.InternalServerError, match="no use"):
            await client_of(line).messages.create(**ASKED)
    assert len(messages_server.requests) == 1


async def test_a_path_in_the_address(messages_server: MessagesServer, ear: Listener) -> None:
    """A provider may have the API below a path; its address has no password to show."""
    upstream = Upstream(f"{messages_server.url}/anthropic/", SecretStr(messages_server.key))
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        with pytest.raises(anthropic.NotFoundError):
            await client_of(line).messages.create(**ASKED)
        assert "no Messages API" in str(gateway.unusable)
    assert "word" not in repr(Upstream("https://user:word@api.example", SecretStr("k")))
