"""Who pays for an agent that came to nothing, over the genuine gateway: only what the provider did is free."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.gateway import Gateway
from orchestrator.llm.line import Line
from orchestrator.llm.upstream import Patience, Upstream
from orchestrator.proposers.base import Barred, Stalled, Unanswered
from sandbox.backends.fake.backend import Guest
from tests.messages import MessagesServer, Refusal, Reply, Step, overloaded, rate_limited
from tests.orchestrator.agents.local import Journal
from tests.orchestrator.agents.test_hostile import saying
from tests.orchestrator.llm.hearing import PRICES, Listener

MODEL = "claude-sonnet-4-5"
FINE: dict[str, Any] = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
STEER = ("use less memory",)


@dataclass
class Came:
    """What became of an agent: how it ended, and what it was told of its questions."""

    error: Exception
    told: list[Any]
    journal: Journal
    line: Line

    @property
    def statuses(self) -> list[int]:
        return [message[2] for message in self.told if message[0] == "head"]


async def came(
    server: MessagesServer,
    bodies: Sequence[dict[str, Any] | bytes],
    *,
    path: str | Sequence[str] = "/v1/messages",
    steering: Sequence[str] = (),
    token: str = "",
    **allowed: Any,
) -> Came:
    """Of one that makes these requests, one after the other, and leaves with nothing done.

    `path` may be one for each. A person steers when it has begun.
    """
    told, said = list[Any](), list[str]()
    paths = [path] * len(bodies) if isinstance(path, str) else path
    data = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]

    async def says(_: Guest, number: int, down: list[Any]) -> list[Any]:
        told.extend(down)
        said[:] = steering
        ended = sum(message[0] in ("end", "cut") for message in told)
        if ended == len(bodies):
            return [["exited", 0, {}, []]]
        if number > 1 and not any(message[0] in ("end", "cut") for message in down):
            return []
        return [["request", ended + 1, "POST", paths[ended], [["x-api-key", token or line.token]], data[ended]]]

    upstream = Upstream(server.url, SecretStr(server.key), Patience(tries=2, first_wait_s=0.01, longest_wait_s=0.01))
    allowance = Allowance(ModelRole.USER, (MODEL,), 10**6, **allowed)
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(allowance, Listener()) as line:
        scene = saying(says)
        scene.brief = {"line": line, "steering": said}
        with pytest.raises((Stalled, Unanswered)) as error:
            await scene.run()
        return Came(error.value, told, scene.journal, line)


def holding(content: Any) -> dict[str, Any]:
    return {**FINE, "messages": [{"role": "user", "content": content}]}


DEEP = b'{"model":"%s","max_tokens":5,"messages":[{"role":"user","content":[{"type":%s}]}]}'


@pytest.mark.parametrize(
    "body",
    [
        holding([{"type": ["text"]}]),
        holding([{"type": {}}]),
        holding(5),
        {**FINE, "tools": [{"type": {}}]},
        {**FINE, "messages": [5]},
        DEEP % (MODEL.encode(), b"[" * 900 + b"]" * 900),
        b"\xff",
    ],
)
async def test_own_malformed_requests(messages_server: MessagesServer, body: dict[str, Any] | bytes) -> None:
    """A request that is none is refused as the API does it, also while a person steers, and its attempt is charged."""
    for steering in ((), STEER):
        found = await came(messages_server, [body], steering=steering)
        assert isinstance(found.error, Unanswered)
        assert "changed nothing" in str(found.error)
        assert not found.line.unanswered
        assert found.told[0][:3] == ["head", 1, 400]
        assert json.loads(found.told[1][2])["error"]["type"] == "invalid_request_error"
    assert messages_server.requests == []


@pytest.mark.parametrize(
    ("steps", "free"),
    [
        ([overloaded()], True),
        ([rate_limited("0")], True),
        ([Refusal(500, "api_error")], True),
        ([Reply(cut_after=0)], True),
        ([Reply(error_after=0)], True),
        ([Refusal(400, "invalid_request_error")], False),
        ([Refusal(403, "permission_error")], False),
        ([overloaded(), overloaded(), Reply()], False),
        ([Reply()], False),
    ],
)
async def test_faults_of_the_provider(messages_server: MessagesServer, steps: list[Step], free: bool) -> None:
    """Where the provider failed and never answered, it is not the agent that pays; one answer, and it is."""
    last = steps[-1]
    messages_server.play(*steps)
    messages_server.answering(lambda _: last)
    assert isinstance((await came(messages_server, [FINE, FINE])).error, Stalled) is free


async def test_our_own_limit_is_no_fault(messages_server: MessagesServer) -> None:
    """Requests beyond our own limit a minute are nobody's fault but the agent's."""
    assert isinstance((await came(messages_server, [FINE, FINE], per_minute=0)).error, Unanswered)


async def test_a_broken_request_loses_no_instruction(messages_server: MessagesServer) -> None:
    """What a person said is in the next question that can be read, however many before it could not."""
    messages_server.answering(lambda _: Reply())
    bodies = [holding(5), {**FINE, "messages": [{"role": "user"}, 5]}, {**FINE, "messages": []}, FINE]
    await came(messages_server, bodies, steering=STEER)
    assert "use less memory" in json.dumps(messages_server.bodies[-1]["messages"])


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/responses", {}, "/v1/responses: not offered here; set the agent up for Anthropic's Messages API"),
        ("/v1/chat/completions", FINE, "/v1/chat/completions: not offered here; set the agent up for Anthropic's"),
        ("/messages", FINE, "/messages: not offered here; set the agent's base URL so that it asks at /v1/messages"),
        ("/v1/messages", {**FINE, "max_tokens": 128_000}, "raise model.usd above "),
        ("/v1/messages", {**FINE, "tools": [{"type": "web_search_20250305"}]}, "set the agent up to leave it out"),
        ("/v1/messages", {**FINE, "fallbacks": ["x"]}, "fallbacks: not offered here"),
    ],
)
async def test_an_agent_that_can_never_get_an_answer(
    messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], why: str
) -> None:
    """One whose first question can never pass, and that finds no other way, is ended free, with what to change."""
    monkeypatch.setattr("orchestrator.agents.session.GRACE_S", 0.0)
    found = await came(messages_server, [body, body], path=path)
    assert isinstance(found.error, Stalled)
    assert why in str(found.error)
    assert "; set the agent" in str(found.error) or "raise model.usd" in why
    assert (found.told, found.journal.ends[0].ending) == ([], "refused")
    assert messages_server.requests == []


async def test_an_agent_that_leaves_after_its_refusal(messages_server: MessagesServer) -> None:
    """One that exits because of it is free as well; one with no token of ours is told apart by its chamber."""
    left = await came(messages_server, [FINE], path="/v1/responses")
    assert isinstance(left.error, Barred)
    assert "/v1/responses: not offered here" in str(left.error)
    other = await came(messages_server, [FINE], token="sk-of-its-own")
    assert isinstance(other.error, Stalled)
    assert "send the token that it finds in ANTHROPIC_API_KEY" in str(other.error)


@pytest.mark.parametrize(
    ("paths", "most"),
    [
        (["/v1/responses", "/v1/chat/completions", "/v1/messages"], [5, 5, 5]),
        (["/v1/messages"] * 3, [128_000, 100_000, 5]),
    ],
)
async def test_an_agent_that_asks_in_another_way(
    messages_server: MessagesServer, paths: list[str], most: list[int]
) -> None:
    """An agent that falls back to another API, or asks for less as it was told, works on and pays like any other."""
    messages_server.answering(lambda _: Reply())
    found = await came(messages_server, [{**FINE, "max_tokens": each} for each in most], path=paths)
    assert isinstance(found.error, Unanswered)
    assert found.line.barred is None
    assert found.statuses[-1] == 200


async def test_what_was_refused_is_in_the_reason(messages_server: MessagesServer) -> None:
    """Once an answer came, a refusal ends nothing and frees nobody; the reason has the last one. An agent may look for
    what is not here, or ask another model for a title, before it asks what matters.
    """
    messages_server.answering(lambda _: Reply())
    dear, other, small = (
        {**FINE, "max_tokens": 128_000},
        {**FINE, "model": "claude-opus-5-5"},
        {**FINE, "model": "small"},
    )
    late = await came(messages_server, [FINE, other, dear])
    side = await came(messages_server, [small, FINE])
    assert isinstance(late.error, Unanswered)
    assert isinstance(side.error, Unanswered)
    assert "the gateway refused: this call may cost " in str(late.error)
    assert " raise model.usd above" in str(late.error)
    assert "'small' is not in this allowance; " in str(side.error)
    assert "; set the agent up" in str(side.error)
    assert side.statuses == [403, 200]
