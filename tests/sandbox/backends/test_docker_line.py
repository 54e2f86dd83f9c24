"""The kept connection to the engine: whose end is a silence, and whose is not."""

import asyncio

import pytest

from sandbox.backends.docker.line import Line
from sandbox.errors import Unavailable


class Answering:
    """Answers each question with this head, and hangs up after so many answers."""

    def __init__(self, head: bytes, answers: int) -> None:
        self._head = head
        self._answers = answers
        self.accepted = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        for _ in range(self._answers):
            try:
                await reader.readuntil(b"\r\n\r\n")
            except EOFError:
                break
            writer.write(self._head)
        writer.close()
        await writer.wait_closed()


async def asked(answering: Answering, times: int) -> list[bool]:
    """Whether each of so many questions was answered."""
    heard = []
    async with await asyncio.start_server(answering, "127.0.0.1", 0) as server:
        line = Line(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for _ in range(times):
            try:
                await line.ask()
            except Unavailable:
                heard.append(False)
            else:
                heard.append(True)
        line.close()
    return heard


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nServer: x\r\nconnection: Upgrade, Close\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
    ],
)
async def test_T86_a_proxy_that_closes_each_connection(head: bytes) -> None:
    """It says so, and every question is answered: no limit is void for it."""
    answering = Answering(head, answers=1)
    assert await asked(answering, 4) == [True] * 4
    assert answering.accepted == 4


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nX: close\r\n\r\n", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n"]
)
async def test_T86_a_kept_connection_that_ends(head: bytes) -> None:
    """Its end is heard of once, though every later question is answered."""
    answering = Answering(head, answers=2)
    assert await asked(answering, 4) == [True, True, False, True]
    assert answering.accepted == 2
