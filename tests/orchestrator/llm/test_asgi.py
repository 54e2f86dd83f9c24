"""Driving an application in this process: pieces come as they are sent, and hanging up is noticed."""

import asyncio
from typing import Any

import pytest

from orchestrator.llm import asgi

START = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}


def piece(data: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def test_pieces_come_as_they_are_sent() -> None:
    """The second piece is not made before the first was taken: nothing piles up. To HEAD only the head is passed on."""
    made: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (scope["path"], scope["query_string"]) == ("/p", b"q=1")
        assert (await receive())["body"] == b"body"
        await send(START)
        for data in (b"1", b"2", b"3"):
            made.append(data)
            await send(piece(data))
        await send(piece(b"", more=False))

    async with asgi.asked(app, "POST", "/p", {"X-Y": "z"}, b"body", "q=1") as answered:
        assert (answered.status, answered.headers) == (200, ((b"a", b"b"),))
        got = []
        async for data in answered.chunks:
            got.append(data)
            assert len(made) <= len(got) + 1
    assert got == [b"1", b"2", b"3"]
    async with asgi.asked(app, "HEAD", "/p", {}, b"body", "q=1") as answered:
        assert (answered.status, [data async for data in answered.chunks]) == (200, [])


async def test_hanging_up() -> None:
    """Leaving early is a disconnect: the application is ended, and has cleaned up when we are out."""
    clean: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await receive()
            await send(START)
            await send(piece(b"1"))
            assert (await receive())["type"] == "http.disconnect"
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            clean.append(True)

    async with asgi.asked(app, "GET", "/", {}, b"") as answered:
        async for _ in answered.chunks:
            break
    assert clean == [True]


async def test_breaking_off() -> None:
    """An application that ends in the middle of its answer, or before it, is not taken for one that is done."""

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send(piece(b"1"))

    async with asgi.asked(half, "GET", "/", {}, b"") as answered:
        with pytest.raises(asgi.CutShort):
            _ = [data async for data in answered.chunks]

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        pass

    with pytest.raises(asgi.CutShort):
        async with asgi.asked(nothing, "GET", "/", {}, b""):
            pass


async def test_a_broken_application_is_heard() -> None:
    """What an application raises is not swallowed."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send(piece(b"", more=False))
        raise ZeroDivisionError

    async def ask() -> None:
        async with asgi.asked(broken, "GET", "/", {}, b"") as answered:
            assert [data async for data in answered.chunks] == []
            await asyncio.sleep(0)

    with pytest.raises(ZeroDivisionError):
        await ask()
