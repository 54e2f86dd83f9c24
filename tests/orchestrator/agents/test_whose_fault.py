"""Who pays for an agent that came to nothing, over the genuine gateway: only what the provider did is free."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from tests.orchestrator.agents.local import Scene
from tests.orchestrator.agents.test_hostile import saying
from tests.orchestrator.llm.hearing import PRICES, Listener

MODEL = "claude-sonnet-4-5"
FINE: dict[str, Any] = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}


def holding(content: Any) -> dict[str, Any]:
    return {**FINE, "messages": [{"role": "user", "content": content}]}


@asynccontextmanager
async def line_to(server: MessagesServer, **more: Any) -> AsyncIterator[Line]:
    upstream = Upstream(server.url, SecretStr(server.key), Patience(tries=2, first_wait_s=0.01, longest_wait_s=0.01))
    allowance = Allowance(ModelRole.USER, (MODEL,), 10**6, **more)
    async with Gateway(upstream, PRICES) as gateway, gateway.open_line(allowance, Listener()) as line:
        yield line


def asking(
    line: Line,
    bodies: list[bytes],
    told: list[Any],
    steering: tuple[str, ...] = (),
    path: str | list[str] = "/v1/messages",
    token: str = "",
) -> Scene:
    """An agent that makes these requests, one after the other, and leaves with nothing done.

    `path` may be one for each. A person steers when it has begun.
    """
    said: list[str] = []
    heads = [["x-api-key", token or line.token]]
    paths = [path] * len(bodies) if isinstance(path, str) else path
    waiting = [
        ["request", at, "POST", place, heads, body]
        for at, (place, body) in enumerate(zip(paths, bodies, strict=True), 1)
    ]

    async def says(_: Guest, number: int, down: list[Any]) -> list[Any]:
        told.extend(down)
        said[:] = steering
        ended = sum(message[0] in ("end", "cut") for message in told)
        if ended == len(bodies):
            return [["exited", 0, {}, []]]
        return [waiting[ended]] if number == 1 or any(message[0] in ("end", "cut") for message in down) else []

    scene = saying(says)
    scene.brief = {"line": line, "steering": said}
    return scene


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(holding([{"type": ["text"]}])).encode(),
        json.dumps(holding([{"type": {}}])).encode(),
        json.dumps(holding(5)).encode(),
        json.dumps({**FINE, "tools": [{"type": {}}]}).encode(),
        json.dumps({**FINE, "messages": [5]}).encode(),
        b'{"model":"%s","max_tokens":5,"messages":[{"role":"user","content":[{"type":%s}]}]}'
        % (MODEL.encode(), b"[" * 900 + b"]" * 900),
        b"\xff",
    ],
)
@pytest.mark.parametrize("steering", [(), ("use less memory",)])
async def test_own_malformed_requests(messages_server: MessagesServer, body: bytes, steering: tuple[str, ...]) -> None:
    """A request that is none is refused as the API does it, also while a person steers, and its attempt is charged."""
    told: list[Any] = []
    async with line_to(messages_server) as line:
        with pytest.raises(Unanswered, match="changed nothing"):
            await asking(line, [body], told, steering).run()
        assert not line.unanswered
    assert told[0][:3] == ["head", 1, 400]
    assert json.loads(told[1][2])["error"]["type"] == "invalid_request_error"
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
    async with line_to(messages_server) as line:
        scene = asking(line, [json.dumps(FINE).encode()] * 2, [])
        with pytest.raises(Stalled if free else Unanswered):
            await scene.run()


async def test_a_broken_request_loses_no_instruction(messages_server: MessagesServer) -> None:
    """What a person said is in the next question that can be read, however many before it could not."""
    messages_server.answering(lambda _: Reply())
    bodies = [holding(5), {**FINE, "messages": [{"role": "user"}, 5]}, {**FINE, "messages": []}, FINE]
    async with line_to(messages_server) as line:
        with pytest.raises(Unanswered):
            await asking(line, [json.dumps(body).encode() for body in bodies], [], ("use less memory",)).run()
    assert "use less memory" in json.dumps(messages_server.bodies[-1]["messages"])


async def test_our_own_limit_is_no_fault(messages_server: MessagesServer) -> None:
    """Requests beyond our own limit a minute are nobody's fault but the agent's."""
    async with line_to(messages_server, per_minute=0) as line:
        with pytest.raises(Unanswered):
            await asking(line, [json.dumps(FINE).encode()] * 2, []).run()


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/v1/responses", {}, "/v1/responses: not offered here; set the agent up for Anthropic's Messages API"),
        ("/v1/chat/completions", FINE, "/v1/chat/completions: not offered here; set the agent up for Anthropic's"),
        ("/messages", FINE, "/messages: not offered here; set the agent's base URL so that it asks at /v1/messages"),
        ("/v1/messages", {**FINE, "max_tokens": 128_000}, "raise model.usd above "),
        ("/v1/messages", {**FINE, "tools": [{"type": "web_search_20250305"}]}, "set the agent up to leave it out"),
        ("/v1/messages", {**FINE, "fallbacks": ["x"]}, "fallbacks: not offered here.*set the agent up to leave it out"),
    ],
)
async def test_an_agent_that_can_never_get_an_answer(
    messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], why: str
) -> None:
    """An agent whose first question no change of words lets pass, and that finds no other way in time, is ended free,
    with what to change.
    """
    monkeypatch.setattr("orchestrator.agents.session.GRACE_S", 0.0)
    told: list[Any] = []
    async with line_to(messages_server) as line:
        scene = asking(line, [json.dumps(body).encode()] * 2, told, path=path)
        with pytest.raises(Stalled, match=why):
            await scene.run()
    assert told == []
    assert scene.journal.ends[0].ending == "refused"
    assert messages_server.requests == []


async def test_an_agent_that_leaves_after_its_refusal(messages_server: MessagesServer) -> None:
    """One that exits because of it is free as well, with what to change."""
    async with line_to(messages_server) as line:
        with pytest.raises(Barred, match="/v1/responses: not offered here"):
            await asking(line, [json.dumps(FINE).encode()], [], path="/v1/responses").run()


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
    told: list[Any] = []
    async with line_to(messages_server) as line:
        scene = asking(line, [json.dumps({**FINE, "max_tokens": each}).encode() for each in most], told, path=paths)
        with pytest.raises(Unanswered, match="changed nothing"):
            await scene.run()
        assert line.barred is None
    assert [message[2] for message in told if message[0] == "head"][-1] == 200


async def test_an_agent_without_the_token(messages_server: MessagesServer) -> None:
    """An agent that shows no token, or another, is told apart by the chamber that it asks from."""
    async with line_to(messages_server) as line:
        scene = asking(line, [json.dumps(FINE).encode()], [], token="sk-of-its-own")
        with pytest.raises(Stalled, match="send the token that it finds in ANTHROPIC_API_KEY"):
            await scene.run()


async def test_what_was_refused_is_in_the_reason(messages_server: MessagesServer) -> None:
    """Once an answer came, a refusal ends nothing and frees nobody; the reason has the last one."""
    messages_server.answering(lambda _: Reply())
    dear, other = {**FINE, "max_tokens": 128_000}, {**FINE, "model": "claude-opus-5-5"}
    async with line_to(messages_server) as line:
        with pytest.raises(Unanswered, match=r"the gateway refused: this call may cost .* raise model.usd above"):
            await asking(line, [json.dumps(body).encode() for body in (FINE, other, dear)], []).run()


async def test_a_refused_side_question_ends_nothing(messages_server: MessagesServer) -> None:
    """An agent may look for what is not here, or ask another model for a title, before it asks what matters."""
    messages_server.answering(lambda _: Reply())
    told: list[Any] = []
    async with line_to(messages_server) as line:
        with pytest.raises(
            Unanswered, match=r"changed nothing.*'small' is not in this allowance; .*; set the agent up"
        ):
            await asking(line, [json.dumps({**FINE, "model": "small"}).encode(), json.dumps(FINE).encode()], told).run()
    assert [message[2] for message in told if message[0] == "head"] == [403, 200]
