"""Calls are timed by a process that does nothing else: never too little, whatever happens to it or beside it."""

import asyncio
import fcntl
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from sandbox import Channel, Job, Limits, Mode
from sandbox.backends.docker.link import DockerLink
from sandbox.backends.runc.link import RuncLink
from sandbox.channel import ChannelClosed, FrameChannel
from sandbox.clock import Clock
from sandbox.clock.process import CALL_BYTES, LOOKS
from sandbox.errors import Unavailable
from sandbox.wire.frames import HEADER_BYTES, Reply
from tests.sandbox.scripted import play

HANG_S = 120.0
ANSWER = HEADER_BYTES + len(b"reply")


def until(happened: Callable[[], object]) -> float:
    """A moment by which it has happened. The loop stands still until then."""
    end = time.monotonic() + HANG_S
    while not happened():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.001)
    return time.monotonic()


async def until_told(happened: Callable[[], object]) -> None:
    """What the loop, a thread or another process tells, and has no event."""
    async with asyncio.timeout(HANG_S):
        while not happened():  # noqa: ASYNC110  as the docstring says
            await asyncio.sleep(0.001)


def ready(clock: Clock) -> None:
    clock.start()
    until(lambda: clock.is_ready)


@pytest.fixture
async def clock() -> AsyncIterator[Clock]:
    clock = Clock()
    ready(clock)
    yield clock
    await clock.close()


@contextmanager
def linked(clock: Clock | None) -> Iterator[RuncLink]:
    link = RuncLink(clock)
    yield link
    link.close()
    link.theirs.close()


@pytest.fixture
async def link(clock: Clock) -> AsyncIterator[RuncLink]:
    with linked(clock) as link:
        yield link


class Line:
    """A channel over a link, with somebody who reads it."""

    def __init__(self, link: RuncLink) -> None:
        arrival: Callable[[], float] = lambda: link.arrived or time.monotonic()  # noqa: E731
        self.channel = FrameChannel(link.send, 1 << 20, 10_000, arrival=arrival, times=link.times)
        self.heard = 0
        self._link = link
        self._pump = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while pieces := await self._link.receive():
            for _, piece in pieces:
                self.heard += len(piece)
                self.channel.reader.feed(piece)

    def calls(self, size: int = 3) -> "asyncio.Task[Reply]":
        return asyncio.create_task(self.channel.call(b"x" * size, HANG_S))

    async def is_answered(self, size: int = 3) -> Reply:
        """It takes no less than its candidate took."""
        candidate, at = answering(self._link, size)
        reply = await self.calls(size)
        candidate.join(HANG_S)
        assert reply.payload == b"reply"
        assert reply.elapsed_s >= at[1] - at[0]
        return reply

    async def close(self) -> None:
        self._pump.cancel()
        await asyncio.wait([self._pump])


@pytest.fixture
async def line(link: RuncLink) -> AsyncIterator[Line]:
    line = Line(link)
    yield line
    await line.close()


def taken(link: RuncLink, length: int) -> bytes:
    """A call of so many bytes, as a candidate reads it."""
    found = b""
    while len(found) < HEADER_BYTES + length:
        found += os.read(link.theirs.stdin, HEADER_BYTES + length - len(found))
    return found


def framed(call: bytes, payload: bytes = b"reply") -> bytes:
    return len(payload).to_bytes(4, "big") + call[4:HEADER_BYTES] + payload


def heard(link: RuncLink | DockerLink, count: int) -> float:
    """A moment by which the clock, or the thread in its place, has seen so many bytes of a chamber."""
    times = link.times
    return until(lambda: ((said := times.said()) and said[1] >= count) or times.arrivals.stamp[0] >= count)


def answering(link: RuncLink, length: int = 3) -> tuple[threading.Thread, list[float]]:
    """A candidate, and when it had read its call and was about to answer."""
    at: list[float] = []

    def answer() -> None:
        call = taken(link, length)
        at.append(time.monotonic())
        time.sleep(0.02)
        at.append(time.monotonic())
        os.write(link.theirs.stdout, framed(call))

    thread = threading.Thread(target=answer)
    thread.start()
    return thread, at


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """What a candidate does meanwhile."""
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join(HANG_S)


async def reads(link: RuncLink, count: int) -> bytes:
    return await asyncio.to_thread(os.read, link.theirs.stdin, count)


async def stopped(clock: Clock, link: RuncLink) -> None:
    """It has sent a byte, and then stands still."""
    assert link.times.send(b"x")
    assert await reads(link, 1) == b"x"
    assert link.times.sent is not None
    os.kill(clock.pid or 0, signal.SIGSTOP)


@pytest.mark.parametrize(("by_clock", "size"), [(True, 3), (True, CALL_BYTES), (False, 3)])
async def test_a_loop_that_is_late_is_in_no_time(clock: Clock, by_clock: bool, size: int) -> None:
    """Not less than the candidate took, and nothing of what a loop did that was held up before and after it: the end of
    a call is the clock's also where that did not send it, for its size, and a thread's where there is none.
    """
    with linked(clock if by_clock else None) as link:
        line = Line(link)
        for number in range(1, 4):
            candidate, at = answering(link, size)
            begun = time.monotonic()
            calling = line.calls(size)
            await asyncio.sleep(0)  # it is on its way
            candidate.join(HANG_S)
            seen = heard(link, number * ANSWER)
            time.sleep(0.05)  # noqa: ASYNC251  the loop is late
            reply = await calling
            assert (link.times.sent is not None) == (by_clock and size == 3)
            sent = link.times.sent or begun
            assert sent <= at[0]
            assert at[1] - at[0] <= reply.elapsed_s <= seen - sent
        await line.close()


async def test_a_loop_that_comes_late_to_its_own_call(clock: Clock, link: RuncLink, line: Line) -> None:
    """The time begins when the call is on its way, however long ago it was asked for."""
    await stopped(clock, link)
    calling = asyncio.create_task(line.is_answered())
    await asyncio.sleep(0.05)
    late = time.monotonic()
    os.kill(clock.pid or 0, signal.SIGCONT)
    elapsed_s = (await calling).elapsed_s
    assert (link.times.sent or 0) >= late
    assert elapsed_s <= time.monotonic() - late


async def test_a_first_byte_in_advance_gains_nothing(clock: Clock, link: RuncLink) -> None:
    """A stamp counts for what had come by then; what came later, unseen, is timed when it is read."""
    assert link.times.send(b"ask")
    os.write(link.theirs.stdout, b"r")
    heard(link, 1)
    os.kill(clock.pid or 0, signal.SIGSTOP)
    rest = time.monotonic()
    os.write(link.theirs.stdout, b"eply")
    ((_, piece),) = await link.receive()
    os.kill(clock.pid or 0, signal.SIGCONT)
    assert bytes(piece) == b"reply"
    assert (link.arrived or 0) >= rest


async def test_what_was_said_of_an_earlier_call(clock: Clock, link: RuncLink) -> None:
    """It tells nothing of another chamber in the same slot, nor is anything counted there of one that is closed. What
    is torn, since only a part of it has been written, tells nothing at all.
    """
    assert link.times.send(b"one")
    os.write(link.theirs.stdout, b"early")
    heard(link, 5)
    slot = link.times.slot or 0
    assert clock.page
    clock.page[slot * 64 + 32 : slot * 64 + 40] = bytes(8)
    assert link.times.sent is None
    assert link.times.took(5) > 1.0
    link.times.close()
    before = bytes(clock.page[slot * 64 : slot * 64 + 8])
    link.times.took(5000)
    assert bytes(clock.page[slot * 64 : slot * 64 + 8]) == before
    with linked(clock) as other:
        asked = time.monotonic()
        assert other.times.send(b"two")
        assert other.times.slot == slot
        assert other.times.took(5) >= asked
        assert (other.times.sent or asked) >= asked


async def test_one_that_answers_byte_by_byte(link: RuncLink, line: Line) -> None:
    """It is watched for so long only, is timed no shorter for that, and well again in its next call."""
    at: list[float] = []
    payload = bytes(2 * LOOKS)

    def answer() -> None:
        reply = framed(taken(link, 3), payload)
        at.append(time.monotonic())
        for byte in reply[:-1]:
            os.write(link.theirs.stdout, bytes([byte]))
        at.append(time.monotonic())
        os.write(link.theirs.stdout, reply[-1:])

    with meanwhile(answer):
        reply = await line.calls()
    assert reply.payload == payload
    assert reply.elapsed_s >= at[1] - at[0]
    await line.is_answered()
    assert link.times.sent is not None


async def test_an_answer_in_pieces(link: RuncLink, line: Line) -> None:
    """The time is that of the last one, as the clock saw it, also where the loop has read the others and is late."""
    half = threading.Event()

    def answer() -> None:
        reply = framed(taken(link, 3))
        os.write(link.theirs.stdout, reply[:HEADER_BYTES])
        half.wait(HANG_S)
        os.write(link.theirs.stdout, reply[HEADER_BYTES:])

    with meanwhile(answer):
        calling = line.calls()
        await until_told(lambda: line.heard >= HEADER_BYTES)
        half.set()
        seen = heard(link, ANSWER)
        time.sleep(0.05)  # noqa: ASYNC251  the loop is late
        reply = await calling
    assert link.times.sent is not None
    assert reply.elapsed_s <= seen - link.times.sent


async def test_bytes_that_are_left_unread_hold_up_the_next_call(link: RuncLink, line: Line) -> None:
    """A pipe of one page, with a byte of the last call in it: what the candidate does before it makes room counts."""
    fcntl.fcntl(link.theirs.stdin, fcntl.F_SETPIPE_SZ, 4096)
    size = CALL_BYTES - HEADER_BYTES
    first = line.calls(size)
    call = await asyncio.to_thread(taken, link, size - 1)
    os.write(link.theirs.stdout, framed(call))
    await first
    worked: list[float] = []

    def work_first() -> None:
        worked.append(time.monotonic())
        time.sleep(0.05)
        worked.append(time.monotonic())
        os.read(link.theirs.stdin, 1)
        os.write(link.theirs.stdout, framed(taken(link, size)))

    second = line.calls(size)
    await asyncio.sleep(0)  # the clock has it
    await until_told(lambda: link.times.sent is not None)
    with meanwhile(work_first):
        reply = await second
    assert reply.elapsed_s >= worked[1] - worked[0]


async def test_the_end_of_a_stream_does_not_keep_it_busy(clock: Clock, link: RuncLink) -> None:
    """Nor does that of one whose bytes it looks at no more."""
    assert link.times.send(b"ask")
    os.write(link.theirs.stdout, b"x")
    heard(link, 1)
    ours = os.open(f"/proc/self/fd/{link.theirs.stdout}", os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(LOOKS):
        os.write(link.theirs.stdout, b"x")
        os.read(ours, 1)
    os.close(ours)
    os.dup2(link.theirs.stdin, link.theirs.stdout)  # nobody writes any more
    process = psutil.Process(clock.pid)
    await asyncio.sleep(0.1)
    before = sum(process.cpu_times()[:2])
    await asyncio.sleep(0.3)  # of which one that is woken again and again computes all
    assert sum(process.cpu_times()[:2]) - before < 0.1


async def test_a_call_of_any_size(link: RuncLink, line: Line) -> None:
    """The clock sends what a pipe takes whole; what is larger is sent, and its time begun, by the caller."""
    most = CALL_BYTES - HEADER_BYTES
    for size in (3, most, most + 1, 3, 200_000, 3):
        await line.is_answered(size)
        assert (link.times.sent is not None) == (size <= most)


async def test_more_chambers_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handed no more than it may have open: those beyond go without it, and it lives on."""
    few = (24, 24)
    monkeypatch.setattr(resource, "getrlimit", lambda _: few)
    clock = Clock()
    ready(clock)
    pid, room = clock.pid or 0, (few[0] - 16) // 2
    resource.prlimit(pid, resource.RLIMIT_NOFILE, few)
    links = [RuncLink(clock) for _ in range(12)]
    assert [link.times.send(b"ask") for link in links] == [True] * room + [False] * (len(links) - room)
    for link in links[:room]:
        assert await reads(link, 3) == b"ask"
    links[0].close()
    assert links[-1].times.send(b"ask")
    assert await reads(links[-1], 3) == b"ask"
    assert clock.pid == pid
    await clock.close()
    for link in links:
        link.close()
        link.theirs.close()


async def test_a_chamber_that_does_not_read(clock: Clock, link: RuncLink, line: Line) -> None:
    """Its call waits in the clock, and then comes whole and once; another chamber's calls go on meanwhile."""
    full = os.open(f"/proc/self/fd/{link.theirs.stdin}", os.O_WRONLY | os.O_NONBLOCK)
    room = os.write(full, bytes(fcntl.fcntl(full, fcntl.F_GETPIPE_SZ)))
    os.close(full)
    calling = line.calls()
    with linked(clock) as other:
        beside = Line(other)
        await beside.is_answered()
        await beside.close()

    def read_late() -> None:
        left = room
        while left:
            left -= len(os.read(link.theirs.stdin, left))
        os.write(link.theirs.stdout, framed(taken(link, 3)))

    with meanwhile(read_late):
        assert (await calling).payload == b"reply"


async def killed(clock: Clock) -> None:
    os.kill(clock.pid or 0, signal.SIGKILL)
    await until_told(lambda: clock.pid is None)


async def test_a_clock_that_dies(clock: Clock, link: RuncLink, line: Line) -> None:
    """A call that it was given is nobody's fault; the next ones go without it, until there is a new one."""
    calling = line.calls()
    await asyncio.sleep(0)
    first = clock.pid
    os.kill(first or 0, signal.SIGKILL)
    with pytest.raises(ChannelClosed):
        await calling
    assert isinstance(line.channel.cause, Unavailable)
    later = Line(link)
    if select.select([link.theirs.stdin], [], [], 0)[0]:
        taken(link, 3)  # it was sent before
    await later.is_answered()
    assert link.times.sent is None
    await later.close()
    ready(clock)
    with linked(clock) as other:
        assert other.times.send(b"ask")
    assert clock.pid not in (None, first)


async def test_a_clock_that_dies_beside_a_call_of_its_caller(clock: Clock, link: RuncLink, line: Line) -> None:
    """One that we sent ourselves was sent, whoever sent the one before."""
    await line.is_answered()
    assert link.times.sent is not None
    asking = asyncio.create_task(line.channel.call_ahead(b"ask", HANG_S, b"S"))
    call = await asyncio.to_thread(taken, link, 3)
    await killed(clock)
    os.write(link.theirs.stdout, framed(call))
    assert getattr(await asking, "payload", None) == b"reply"


async def test_a_chamber_that_outlives_its_clock(clock: Clock, link: RuncLink, line: Line) -> None:
    """What comes is timed by the thread again, and by a new clock once that takes orders."""
    await line.is_answered()
    await killed(clock)
    candidate, at = answering(link)
    begun = time.monotonic()
    calling = line.calls()
    await asyncio.sleep(0)
    candidate.join(HANG_S)  # the loop is late
    seen = heard(link, ANSWER)
    time.sleep(0.05)  # noqa: ASYNC251  and later still
    reply = await calling
    assert at[1] - at[0] <= reply.elapsed_s <= seen - begun
    for _ in range(5):  # one that took orders could be started: its end is no reason to have none from then on
        ready(clock)
        await line.is_answered()
        assert link.times.sent is not None
        await killed(clock)


def hung_after(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for module in ("sandbox.channel", "sandbox.clock.clock"):
        monkeypatch.setattr(f"{module}.HUNG_S", seconds)


async def test_a_clock_that_is_overdue(
    clock: Clock, link: RuncLink, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that it does not send is nobody's fault, and fails before its time is over; others get a new one."""
    hung_after(monkeypatch, 0.05)
    first = clock.pid or 0
    await stopped(clock, link)
    with pytest.raises(ChannelClosed):
        await line.calls()
    assert isinstance(line.channel.cause, Unavailable)
    await until_told(lambda: clock.pid != first)
    ready(clock)
    with linked(clock) as other:
        assert other.times.send(b"ask")
        assert await reads(other, 3) == b"ask"


async def test_a_clock_that_is_late_for_a_short_limit(clock: Clock, link: RuncLink, line: Line) -> None:
    """Of a caller who gives up: the time of a candidate that was not asked is not up, however little it has left."""
    await stopped(clock, link)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(line.calls(), 0.05)
    assert isinstance(line.channel.cause, Unavailable)
    os.kill(clock.pid or 0, signal.SIGCONT)


@pytest.mark.parametrize("sends", [False, True])
async def test_a_clock_that_hangs_beside_short_limits(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, *, sends: bool
) -> None:
    """No call waits long enough to tell, so that all are counted that it has not sent since the last that it sent."""
    hung_after(monkeypatch, 0.15)
    first = clock.pid or 0
    for again in (True, False, sends):
        with linked(clock) as link:
            line = Line(link)
            if again:
                os.kill(first, signal.SIGCONT)
                await stopped(clock, link)
            assert link.times.send(b"x")
            with pytest.raises(ChannelClosed):
                await line.channel.call(b"ask", 0.07)
            assert isinstance(line.channel.cause, Unavailable)
            await line.close()
    if sends:
        os.kill(first, signal.SIGCONT)
    else:
        await until_told(lambda: clock.pid != first)
    ready(clock)
    with linked(clock) as link:
        assert link.times.send(b"x")
        assert await reads(link, 1) == b"x"
    assert (clock.pid == first) == sends


async def test_a_clock_that_is_late_for_a_job(clock: Clock, link: RuncLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's own limit charges nobody for a call that was not sent, either."""

    async def talk(channel: Channel) -> None:
        await channel.call(b"ask", HANG_S)

    await stopped(clock, link)
    played = await play(Job(command=("serve",), mode=Mode.RELAY, limits=Limits(wall=0.05)), talk=talk)
    monkeypatch.setattr(played.hold.link, "times", link.times, raising=False)
    played.hold.out(b"unpacked 0\n")
    with pytest.raises(Unavailable, match="the clock of calls"):
        await played.outcome()
    os.kill(clock.pid or 0, signal.SIGCONT)


@pytest.mark.parametrize("why", ["no interpreter", "no program", "no descriptors"])
async def test_no_clock_can_be_had(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are made all the same, and timed by their caller; after a few starts nobody tries again."""
    monkeypatch.setattr(subprocess, "Popen", popen := Mock(wraps=subprocess.Popen))
    if why == "no interpreter":
        monkeypatch.setattr(sys, "executable", "/nowhere")
    elif why == "no program":
        monkeypatch.setattr("sandbox.clock.clock.PROGRAM", Path("/nowhere"))
    else:
        monkeypatch.setattr(os, "pidfd_open", lambda _: os.close(-1))
    clock = Clock()
    with linked(clock) as link:
        line = Line(link)
        for _ in range(6):
            await line.is_answered()
            assert link.times.sent is None
            await until_told(lambda: clock.pid is None)
        assert popen.call_count == 3
        await line.close()
    await clock.close()


def test_it_ends_with_its_owner() -> None:
    """Also with one that is killed, and it keeps nothing of a chamber open then."""
    ours, theirs = os.pipe()
    owner = """
import asyncio, os, sys, time
from sandbox.clock import Clock
async def main():
    clock = Clock()
    clock.start()
    while not (slot := clock.watch(int(sys.argv[1]), os.pipe()[0], print)):
        time.sleep(0.01)
    assert clock.call(slot, b"ask")
    time.sleep(600)
asyncio.run(main())
"""
    command = [sys.executable, "-c", owner, str(theirs)]
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, pass_fds=[theirs], cwd=here) as process:
        os.close(theirs)
        assert os.read(ours, 100) == b"ask"
        process.kill()
    assert select.select([ours], [], [], HANG_S)[0]
    assert os.read(ours, 100) == b""
    os.close(ours)


async def test_nothing_stays_open(clock: Clock, link: RuncLink) -> None:
    """PID 1 ends everything at the end of its stdin: nobody may hold it open once we have closed it. The clock goes
    with its backend.
    """
    assert link.times.send(b"ask")
    link.close()

    def read_all() -> bytes:
        with os.fdopen(os.dup(link.theirs.stdin), "rb") as stdin:
            return stdin.read()

    assert await asyncio.wait_for(asyncio.to_thread(read_all), HANG_S) == b"ask"
    pid = clock.pid
    await clock.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid or 0, 0)
    with linked(clock) as other:
        assert not other.times.send(b"ask")


@pytest.mark.parametrize("by_clock", [True, False])
async def test_over_an_engines_socket(clock: Clock, by_clock: bool) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    link = DockerLink(ours, clock if by_clock else None)
    assert link.times.send(b"ask") == by_clock
    if by_clock:
        assert await asyncio.to_thread(theirs.recv, 100) == b"ask"
    before = time.monotonic()
    theirs.sendall(b"\x01\0\0\0\0\0\0\x05reply")
    seen = heard(link, 13)
    time.sleep(0.01)  # noqa: ASYNC251  the loop is late
    ((_, piece),) = await link.receive()
    assert bytes(piece) == b"reply"
    assert before <= (link.arrived or 0) <= seen
    link.close()
    assert await asyncio.to_thread(theirs.recv, 100) == b""
    theirs.close()
