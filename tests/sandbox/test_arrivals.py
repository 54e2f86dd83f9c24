"""A reply counts from when it came, whatever the event loop did by then, and never from before it was whole."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from sandbox import arrivals
from sandbox.arrivals import Arrivals
from sandbox.backends.docker.link import DockerLink
from sandbox.backends.runc.link import RuncLink
from sandbox.channel import FrameChannel
from sandbox.wire.frames import HEADER_BYTES

HANG_S = 120.0


def until_seen(watched: Arrivals, count: int) -> float:
    """A moment at which so many bytes are known to have come."""
    until = time.monotonic() + HANG_S
    while watched._stamp[0] < count:
        assert time.monotonic() < until, "nobody saw them come"
        time.sleep(0.001)
    return time.monotonic()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_the_time_is_that_of_arrival(pipe: tuple[int, int]) -> None:
    watched = Arrivals(pipe[0])
    for number in (1, 2):
        before = time.monotonic()
        os.write(pipe[1], b"reply")
        seen = until_seen(watched, 5 * number)
        time.sleep(0.01)  # the reader comes late
        assert len(os.read(pipe[0], 100)) == 5
        assert before <= watched.took(5) <= seen
    watched.close()


def test_a_first_byte_in_advance_gains_nothing(pipe: tuple[int, int]) -> None:
    """Where the rest came unseen, it is the time of reading; where it was read in parts, each has its own."""
    watched = Arrivals(pipe[0])
    os.write(pipe[1], b"r")
    until_seen(watched, 1)
    with arrivals._watcher()._guard:  # the watcher is late
        rest = time.monotonic()
        os.write(pipe[1], b"eply")
        assert len(os.read(pipe[0], 100)) == 5
        assert watched.took(5) >= rest
    os.write(pipe[1], b"more and more")
    seen = until_seen(watched, 18)
    for count in (4, 9):
        assert len(os.read(pipe[0], count)) == count
        assert watched.took(count) <= seen
    watched.close()


def test_a_descriptor_that_is_used_again(pipe: tuple[int, int]) -> None:
    """What is over is forgotten: the next one of the same number begins at nothing."""
    first = Arrivals(pipe[0])
    os.write(pipe[1], b"old")
    until_seen(first, 3)
    os.read(pipe[0], 3)
    first.close()
    first.close()
    second = Arrivals(pipe[0])
    before = time.monotonic()
    os.write(pipe[1], b"new")
    until_seen(second, 3)
    os.read(pipe[0], 3)
    assert second.took(3) >= before
    second.close()


async def _pump(link: RuncLink, channel: FrameChannel) -> None:
    while pieces := await link.receive():
        for _, piece in pieces:
            channel.reader.feed(piece)


async def test_a_loop_that_is_held_up_is_not_in_a_call() -> None:
    """A neighbour that keeps the loop for as long as it likes, while a reply is there, costs the caller nothing."""
    link = RuncLink()
    channel = FrameChannel(link.send, 1000, 10, arrival=lambda: link.arrived or time.monotonic())
    pump = asyncio.create_task(_pump(link, channel))
    seen: list[float] = []

    def answer() -> None:
        asked = os.read(link.theirs.stdin, 1000)
        os.write(link.theirs.stdout, (5).to_bytes(4, "big") + asked[4:HEADER_BYTES] + b"reply")
        seen.append(until_seen(link.times._arrivals, HEADER_BYTES + 5))

    candidate = threading.Thread(target=answer)
    candidate.start()
    started = time.monotonic()
    calling = asyncio.create_task(channel.call(b"ask", HANG_S))
    await asyncio.sleep(0)  # it is sent
    candidate.join(HANG_S)  # here nothing else happens on the loop
    time.sleep(0.05)  # noqa: ASYNC251  nor here
    reply = await calling
    assert reply.payload == b"reply"
    assert reply.elapsed_s <= seen[0] - started
    pump.cancel()
    await asyncio.wait([pump])
    link.close()
    for descriptor in (link.theirs.stdin, link.theirs.stdout, link.theirs.stderr):
        os.close(descriptor)


async def test_an_engines_socket() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    link = DockerLink(ours)
    theirs.sendall(b"\x01\0\0\0\0\0\0\x05reply")
    seen = until_seen(link.times._arrivals, 13)
    time.sleep(0.01)  # noqa: ASYNC251  the loop is late
    ((_, piece),) = await link.receive()
    assert bytes(piece) == b"reply"
    assert link.arrived is not None
    assert link.arrived <= seen
    link.close()
    theirs.close()
