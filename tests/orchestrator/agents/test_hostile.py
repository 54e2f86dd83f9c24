"""Chambers that do not keep to the protocol: forged frames, floods, silence. None gains anything, all are ended."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.agents import exchange, session
from orchestrator.judge.guest.blastdoor_values import decode, encode
from orchestrator.proposers.base import Exhausted, Unanswered
from orchestrator.watch.signals import Kind
from sandbox.backends.fake.backend import Died, Guest
from sandbox.wire.demux import Stream
from tests.orchestrator.agents.local import Line, Scene

Says = Callable[[Guest, int, list[Any]], Awaitable[list[Any]]]
CALL = ["request", 1, "POST", "/v1/messages", [], b"{}"]


def saying(says: Says) -> Scene:
    """A chamber whose every frame the test writes, by the number of the frame and what came down with it."""

    async def program(guest: Guest) -> int:
        number = 0
        while request := await guest.request():
            nonce, payload = request
            seconds, down = decode(payload)
            number += 1
            up = await says(guest, number, down)
            if not up:
                await asyncio.sleep(min(seconds, 0.01))
            guest.reply(nonce, encode(up))
        return 0

    return Scene(program=program)


async def refused(scene: Scene, match: str) -> None:
    with pytest.raises(Unanswered, match=match):
        await scene.run()
    assert [kind for kind, _ in scene.journal.notes] == ["intended", "ended"]


async def test_forged_frame() -> None:
    """Bytes that are no value end the chamber, and the attempt is charged."""

    async def program(guest: Guest) -> int:
        if request := await guest.request():
            guest.reply(request[0], b"\xff forged")
            await asyncio.sleep(60)
        return 0

    scene = Scene(program=program)
    await refused(scene, "broke the protocol: its frame is no value")
    assert scene.journal.ends[0].ending == "protocol broken"


async def test_wrong_nonce() -> None:
    """An answer to no question of ours ends the chamber."""

    async def program(guest: Guest) -> int:
        if await guest.request():
            guest.reply(b"12345678", encode([]))
            await asyncio.sleep(60)
        return 0

    await refused(Scene(program=program), "handed nothing over")


async def test_unasked_bytes() -> None:
    """A chamber that speaks without being asked is ended."""

    async def says(guest: Guest, number: int, _: list[Any]) -> list[Any]:
        if number == 2:
            guest.link.say(Stream.STDOUT, b"x" * 100)
        return []

    await refused(saying(says), "handed nothing over")


async def test_one_number_twice() -> None:
    """Two requests cannot have one number: their answers could not be told apart."""

    async def never(scope: Any, receive: Any, send: Any) -> None:
        del scope, send
        await receive()
        await asyncio.sleep(60)

    async def says(_: Guest, number: int, __: list[Any]) -> list[Any]:
        return [CALL] if number <= 2 else []

    scene = saying(says)
    scene.brief = {"line": Line(never)}
    await refused(scene, "two requests with one number")


async def test_flood_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is an end to how many requests an agent may make, however they are answered."""
    monkeypatch.setattr(exchange, "REQUESTS", 50)

    async def says(_: Guest, number: int, __: list[Any]) -> list[Any]:
        return [[*CALL[:1], 10 * number + at, *CALL[2:]] for at in range(10)]

    await refused(saying(says), "a flood: 51 requests")


async def test_too_many_at_a_time() -> None:
    """Of more requests than may be open, the last are refused in the API's own form; the others go on."""
    told: list[list[Any]] = []

    async def never(scope: Any, receive: Any, send: Any) -> None:
        del scope, send
        await receive()
        await asyncio.sleep(60)

    async def says(_: Guest, number: int, down: list[Any]) -> list[Any]:
        told.extend(down)
        if number == 1:
            return [[*CALL[:1], at + 1, *CALL[2:]] for at in range(exchange.OPEN + 1)]
        return [["exited", 0, {"solve.py": b"print(2)\n"}, []]] if told else []

    scene = saying(says)
    scene.brief = {"line": Line(never)}
    await scene.run()
    assert told[0][:3] == ["head", exchange.OPEN + 1, 429]
    assert b"rate_limit_error" in told[1][2]


async def test_flood_of_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is an end to how often a tool may be called."""
    monkeypatch.setattr(session, "TOOLS", 5)

    async def says(_: Guest, number: int, __: list[Any]) -> list[Any]:
        return [["tool", number, "submit", "", {}, []]]

    await refused(saying(says), "a flood of calls to submit")


async def test_one_tool_at_a_time() -> None:
    """A second call while one is answered is refused, not queued."""
    told: list[list[Any]] = []
    gate = asyncio.Event()

    async def tune(_: Any) -> Any:
        await gate.wait()

    async def says(_: Guest, number: int, down: list[Any]) -> list[Any]:
        told.extend(down)
        if number == 1:
            return [["tool", at, "tune", "", {"solve.py": b"2\n"}, []] for at in (1, 2)]
        return [["exited", 0, {"solve.py": b"2\n"}, []]] if told else []

    scene = saying(says)
    scene.brief = {"tune": tune}
    await scene.run()
    assert told == [["told", 2, 1, "one at a time: wait for the answer to the call before"]]


async def test_silent_chamber(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chamber that does not answer at all is ended by the frame's own deadline."""
    monkeypatch.setattr(session, "LATE_S", 0.2)
    monkeypatch.setattr(session, "IDLE_S", 0.1)

    async def program(guest: Guest) -> int:
        await guest.request()
        await asyncio.sleep(60)
        return 0

    await refused(Scene(program=program), "handed nothing over: .*no reply")


async def test_ignores_its_end() -> None:
    """Who is told to finish and does not gets no more time for it, and hands in nothing."""

    async def says(_: Guest, __: int, ___: list[Any]) -> list[Any]:
        return []

    scene = saying(says)
    scene.wall = 1.0
    await refused(scene, "handed nothing over")


async def test_out_of_memory() -> None:
    """A chamber over its memory hands nothing over, and the attempt is charged."""

    async def says(_: Guest, __: int, ___: list[Any]) -> list[Any]:
        raise Died(137, out_of_memory=True)

    scene = saying(says)
    await refused(scene, "over its memory limit")
    assert scene.journal.ends[0].ending == "out of memory"


async def test_paths_that_lead_out() -> None:
    """Names that leave the workspace, or are no names, are left out like any other that is not editable."""

    async def says(_: Guest, __: int, ___: list[Any]) -> list[Any]:
        files = {"../escape.py": b"x", "/etc/passwd": b"x", "lib/../../x.py": b"x", "lib/\x1b[2J.py": b"x", "": b"x"}
        return [["exited", 0, {**files, "solve.py": b"print(3)\n"}, ["secret.txt", "no/such"]]]

    scene = saying(says)
    text = await scene.run()
    assert text.count("diff --git") == 1
    assert scene.journal.ends[0].left_out == 5
    assert "\x1b" not in scene.journal.ends[0].why


async def test_a_workspace_that_does_not_fit() -> None:
    """A workspace that no agent's chamber can hold ends the campaign with one line; nothing is charged."""
    scene = Scene(script="")
    proposer = scene.proposer()
    small = proposer.task.agent.limits.model_copy(update={"work_inodes": 64, "bundle_bytes": 1024})
    agent = proposer.task.agent.model_copy(update={"limits": small})
    tight = replace(proposer, task=proposer.task.model_copy(update={"agent": agent}))
    with pytest.raises(Exhausted, match="bundle_bytes"):
        await tight.propose(scene.asked())


async def test_processor_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the chamber uses of the processors, seen from outside, reaches the stall watch."""

    async def says(guest: Guest, number: int, _: list[Any]) -> list[Any]:
        guest.work(1.5)
        return [["exited", 0, {"solve.py": b"print(2)\n"}, []]] if scene.heard and number > 3 else []

    monkeypatch.setattr(session, "CPU_S", 0.01)
    scene = saying(says)
    await scene.run()
    assert {it.kind for it in scene.heard} == {Kind.CPU}
    assert scene.heard[-1].cpu_s >= 1.5
