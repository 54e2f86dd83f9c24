"""The key is in one place, and is said to nobody but the provider: no log, error, signal or record has it."""

import json
import logging
import pickle
from typing import Any

import anthropic
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from orchestrator.llm import asgi
from orchestrator.llm.asking import client_of
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.line import NoAnswer, Unusable
from orchestrator.llm.upstream import Upstream
from tests.messages import MessagesServer, Raw, Refusal, Reply, overloaded
from tests.orchestrator.llm.conftest import DOLLAR, QUICK, Desk
from tests.orchestrator.llm.hearing import ASKED, PRICES, Listener

CANARY = "sk-ant-api03-canary-8f1d0c"


async def provoked(line: Any, server: MessagesServer, said: list[str]) -> None:
    """Every way in which a call can fail, with a provider that tells the key back wherever it can."""
    told = f"your key is {CANARY}"
    steps = [
        Reply(),
        overloaded(),
        Refusal(400, "invalid_request_error", told),
        Refusal(529, "overloaded_error", told, {"x-echo": told, "request-id": "req"}),
        Raw([told.encode()], 500, {"content-type": "text/plain"}),
        Reply(cut_after=0),
        Reply(cut_after=5),
        Raw([b""], 302, {"location": f"http://127.0.0.1:9/{CANARY}"}),
        Refusal(401, "authentication_error", told),
    ]
    for step in steps:
        server.answering(lambda _, step=step: step)  # type: ignore[misc]
        try:
            await line.ask(system=[], messages=ASKED["messages"], max_tokens=9)
        except (NoAnswer, Unusable) as error:
            said.append(f"{error} {error!r} {error.__dict__} {error.__cause__!r}")
        async with asgi.asked(
            line.app, "POST", "/v1/messages", {"x-api-key": line.token}, json.dumps(ASKED).encode()
        ) as answered:
            said.append(str(answered.headers))
            try:
                said += [chunk.decode() async for chunk in answered.chunks]
            except asgi.CutShort as error:
                said.append(repr(error))


async def test_the_key_is_nowhere(caplog: pytest.LogCaptureFixture, ear: Listener) -> None:
    """A canary as key, every failure provoked, every logger at its most talkative: it reaches the provider only."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    with MessagesServer(CANARY) as server, capture_logs() as events:
        upstream = Upstream(server.url, SecretStr(CANARY), QUICK)
        async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
            await provoked(line, server, said)
            said += [repr(thing) for thing in (upstream, gateway, line, gateway.unusable, vars(line), vars(upstream))]
        assert {request.headers["x-api-key"] for request in server.requests} == {CANARY}
        assert line.token not in str([(request.headers, request.raw) for request in server.requests])
    recorded = repr((ear.intents, ear.signals, ear.ends))
    assert len(ear.ends) == len(ear.intents) > 10
    for place in (*said, caplog.text, str(events), recorded):
        assert CANARY not in place


async def test_key_of_the_environment(monkeypatch: pytest.MonkeyPatch, desk: Desk) -> None:
    """What the environment has for the client, key, token or address, does not get in the way of the line."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, CANARY)
    for name in ("ANTHROPIC_BASE_URL", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    desk.server.play(Reply())
    await desk.line.ask(system=[], messages=ASKED["messages"], max_tokens=9)
    async with client_of(desk.line) as client:
        assert CANARY not in str(client.auth_headers)
    assert CANARY not in str(desk.server.requests[0].headers)


async def test_a_wrong_key_is_one_line(messages_server: MessagesServer, ear: Listener) -> None:
    """A key that the provider refuses is said as such, without the key, and nothing is booked."""
    upstream = Upstream(messages_server.url, SecretStr(CANARY), QUICK)
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(DOLLAR, ear) as line:
        async with client_of(line) as client:
            with pytest.raises(anthropic.AuthenticationError):
                await client.with_options(max_retries=3).messages.create(**ASKED)
        assert gateway.unusable
        assert "\n" not in gateway.unusable
    assert len(messages_server.requests) == 1
    assert ear.used.spent.microdollars == 0


def test_the_key_is_not_written_by_accident() -> None:
    """Neither its text nor its pickle: what holds the key cannot be written out."""
    upstream = Upstream("http://127.0.0.1:9", SecretStr(CANARY))
    assert CANARY not in f"{upstream} {upstream!r} {vars(upstream)}"
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(upstream)
