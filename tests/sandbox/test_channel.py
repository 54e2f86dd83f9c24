"""Calls into a serving chamber, with the other side played by the test."""

import asyncio
import contextlib
import time
from typing import cast

import pytest

from sandbox import Channel, ChannelClosed, Ending, Job, Limits, Mode, Refused, Reply, Silent, Talk
from sandbox.channel import FrameChannel
from sandbox.clock import CallTimes
from sandbox.wire.frames import HEADER_BYTES
from tests.sandbox.scripted import Hiccup, play, settled

LIMIT_S = 0.05
RELAY = Job(command=("serve",), mode=Mode.RELAY)
PATIENT = 20.0


async def calls(channel: Channel) -> None:
    await channel.call(b"x", PATIENT)


async def test_call_and_reply() -> None:
    """A reply comes to its caller with the seconds that it took by our clock, also where two call at once; then the
    talk is over.
    """
    replies: list[Reply] = []

    async def talk(channel: Channel) -> None:
        replies.append(await channel.call(b"one", PATIENT))
        replies.extend(await asyncio.gather(channel.call(b"", PATIENT), channel.call(b"b", PATIENT)))

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    for payload in (b"eno", b"", b"B"):
        await played.hold.reply(payload)
    outcome = await played.outcome()
    assert (outcome.ending, outcome.told) == (Ending.COMPLETED, False)
    assert [reply.payload for reply in replies] == [b"eno", b"", b"B"]
    assert all(0 <= reply.elapsed_s < PATIENT for reply in replies)


async def test_T86_a_reply_says_for_how_long_the_provider_was_silent() -> None:
    """It is there, and whoever times nothing goes on with it."""
    replies: list[Reply] = []

    async def talk(channel: Channel) -> None:
        replies.append(await channel.call(b"one", PATIENT))

    played = await play(RELAY, talk=talk, pulse=Hiccup(6.0), said=b"unpacked 0\n")
    await played.hold.reply(b"eno")
    assert await played.ending() is Ending.COMPLETED
    assert [(reply.payload, reply.silent_s) for reply in replies] == [(b"eno", 6.0)]


@pytest.mark.parametrize("silent_s", [0.0, 6.0])
async def test_T86_a_call_that_is_given_up(silent_s: float) -> None:
    """That nothing was heard says nothing of the program, if the provider was silent meanwhile."""

    async def talk(channel: Channel) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await channel.call(b"x", PATIENT)

    played = await play(RELAY, talk=talk, pulse=Hiccup(silent_s), said=b"unpacked 0\n")
    if silent_s:
        with pytest.raises(Silent, match="a call was given up; the provider did not answer for 6 s"):
            await played.outcome()
    else:
        assert await played.ending() is Ending.COMPLETED


@pytest.mark.parametrize("swallowed", [False, True])
async def test_late_frame(swallowed: bool) -> None:
    """A reply that does not come in time is a typed ending, even if the talk pretends that nothing was: the channel is
    closed for good.
    """

    async def talk(channel: Channel) -> None:
        for _ in range(2):
            try:
                await channel.call(b"x", 0.01)
            except ChannelClosed:
                if not swallowed:
                    raise
            else:
                raise AssertionError("nobody answered")

    outcome = await (await play(RELAY, talk=talk, said=b"unpacked 0\n")).outcome()
    assert (outcome.ending, outcome.told) == (Ending.PROTOCOL, False)
    assert "late" in outcome.reason


async def test_call_after_the_end() -> None:
    """A channel that outlived its chamber is closed."""
    kept: list[Channel] = []

    async def talk(channel: Channel) -> None:
        kept.append(channel)

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    assert await played.ending() is Ending.COMPLETED
    with pytest.raises(ChannelClosed):
        await kept[0].call(b"x", PATIENT)


@pytest.mark.parametrize(
    ("answer", "ending", "why"),
    [
        (b"\0\0\0\1wrongnon", Ending.PROTOCOL, "nonce"),
        (b"\0\0\0\1wrongnonx" * 2, Ending.PROTOCOL, "nonce"),
        (b"\xff\xff\xff\xff", Ending.FAILED, "ended early"),
        (b"", Ending.FAILED, ""),
    ],
)
async def test_forged_replies(answer: bytes, ending: Ending, why: str) -> None:
    """A reply with another nonce, half a reply at the end, or none at all, is the program's own ending."""
    played = await play(RELAY, talk=calls, said=b"unpacked 0\n")
    await played.hold.link.read(13)
    played.hold.out(answer)
    played.hold.link.end()
    outcome = await played.outcome()
    assert outcome.ending is ending
    assert why in outcome.reason


async def test_blurt_before_the_talk() -> None:
    """Bytes before the first request are a broken protocol."""
    played = await play(RELAY, talk=calls, said=b"unpacked 0\n\0\0\0\1")
    assert await played.ending() is Ending.PROTOCOL


async def test_second_reply() -> None:
    """A second reply to one request is extra, even when the talk is still busy elsewhere."""
    busy = asyncio.Event()

    async def talk(channel: Channel) -> None:
        await channel.call(b"x", PATIENT)
        await busy.wait()

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    await played.hold.reply(b"y")
    played.hold.out(b"\0")
    outcome = await played.outcome()
    assert (outcome.ending, "extra" in outcome.reason) == (Ending.PROTOCOL, True)


@pytest.mark.parametrize("error", [ZeroDivisionError("its own mistake"), ChannelClosed("of another chamber")])
async def test_talk_that_raises(error: Exception) -> None:
    """An error of the talk is the caller's own, also one of another chamber's channel: it comes out as it is, nobody
    waits, and the chamber is ended.
    """

    async def talk(_: Channel) -> None:
        raise error

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    with pytest.raises(type(error), match=str(error)):
        await played.outcome()
    assert (played.hold.destroyed, played.hold.released) == (1, 1)


async def test_frame_of_ours_that_is_too_large() -> None:
    """A request over the cap is our own mistake: the talk hears of it, and nothing is sent."""

    async def talk(channel: Channel) -> None:
        await channel.call(b"12345", PATIENT)

    played = await play(
        Job(command=("serve",), mode=Mode.RELAY, limits=Limits(frame_bytes=4)), talk=talk, said=b"unpacked 0\n"
    )
    with pytest.raises(Refused, match="raise frame_bytes"):
        await played.outcome()


@pytest.mark.parametrize("order", ["kill", "stop"])
async def test_orders_end_a_talk(order: str) -> None:
    """A relay that is told to stop or killed ends as killed; the talk is cancelled."""
    reached, cancelled = asyncio.Event(), asyncio.Event()

    async def talk(channel: Channel) -> None:
        try:
            reached.set()
            await channel.call(b"x", PATIENT)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    await reached.wait()
    await (played.chamber.kill() if order == "kill" else played.chamber.stop())
    assert await played.ending() is Ending.KILLED
    assert cancelled.is_set()


async def _sleeps(_: Channel) -> None:
    await asyncio.sleep(PATIENT)


@pytest.mark.parametrize(("talk", "ending"), [(calls, Ending.TIMED_OUT), (_sleeps, Ending.KILLED)])
async def test_wall_clock_of_a_talk(talk: Talk, ending: Ending) -> None:
    """A talk has the job's wall clock. One that outlasts it with no call outstanding is not the candidate's delay."""
    job = Job(command=("serve",), mode=Mode.RELAY, limits=Limits(wall=0.01))
    outcome = await (await play(job, talk=talk, said=b"unpacked 0\n")).outcome()
    assert (outcome.ending, outcome.told) == (ending, False)


@pytest.mark.parametrize("calls_again", [False, True])
async def test_chamber_that_ends_after_its_last_reply(calls_again: bool) -> None:
    """Falling silent while nobody waits is fine, unless another call comes, whatever the talk's pace."""
    silent = asyncio.Event()

    async def talk(channel: Channel) -> None:
        await channel.call(b"x", PATIENT)
        await silent.wait()
        if calls_again:
            await channel.call(b"y", PATIENT)

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    await played.hold.reply(b"")
    played.hold.link.end()
    await settled()
    silent.set()
    assert await played.ending() is (Ending.FAILED if calls_again else Ending.COMPLETED)


async def test_call_that_its_caller_gives_up() -> None:
    """A call that the judge itself gave up closes the channel; the candidate broke no rule."""

    async def talk(channel: Channel) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(channel.call(b"x", PATIENT), 0.01)
        await channel.call(b"y", PATIENT)

    played = await play(RELAY, talk=talk, said=b"unpacked 0\n")
    with pytest.raises(ChannelClosed):
        await played.outcome()


@pytest.mark.parametrize("used", [None, 1.5])
async def test_processor_seconds(used: float | None) -> None:
    """Whoever talks can ask what the chamber has used so far: what its provider says, or nothing."""
    told: list[float | None] = []

    async def talk(channel: Channel) -> None:
        told.append(await channel.processor_seconds())

    played = await play(RELAY, talk=talk)
    played.hold.link.processor_s = used
    played.hold.out(b"unpacked 0\n")
    assert await played.ending() is Ending.COMPLETED
    assert told == [used]


class LateClock:
    """It sent the call as late as the test says; nobody else does."""

    by_clock = True
    sent: float | None = None

    def __init__(self, later_s: float) -> None:
        self.later_s = later_s
        self.calls: list[bytes] = []

    def send(self, call: bytes) -> bool:
        self.sent = time.monotonic() + self.later_s
        self.calls.append(call)
        return True


@pytest.mark.parametrize("elapsed_s", [0.01, 1.0])
async def test_a_limit_begins_when_the_clock_has_sent_the_call(elapsed_s: float) -> None:
    """What the clock takes before is not the candidate's: its reply is late by the time that is measured."""
    clock = LateClock(later_s=60.0)
    arrival = lambda: (clock.sent or 0.0) + elapsed_s  # noqa: E731
    channel = FrameChannel(_never, 100, 10, arrival=arrival, times=cast(CallTimes, clock))
    calling = asyncio.create_task(channel.call(b"x", LIMIT_S))
    await asyncio.sleep(0.1)
    channel.reader.feed(framed(clock.calls[0], b"y"))
    await _told_by_what_it_took(calling, channel, elapsed_s)


@pytest.mark.parametrize("elapsed_s", [0.01, 1.0])
async def test_a_reply_that_is_heard_late(elapsed_s: float) -> None:
    """A loop that wakes up past the limit hears what is there by then, and goes by when it came."""
    sent: list[tuple[float, bytes]] = []

    async def send(data: bytes) -> None:
        sent.append((time.monotonic(), data))

    async def hear() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        channel.reader.feed(framed(sent[0][1], b"y"))

    channel = FrameChannel(send, 100, 10, arrival=lambda: sent[0][0] + elapsed_s)
    calling = asyncio.create_task(channel.call(b"x", LIMIT_S))
    await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251  the loop is late
    hearing = asyncio.create_task(hear())
    await _told_by_what_it_took(calling, channel, elapsed_s)
    await hearing


async def _told_by_what_it_took(calling: asyncio.Task[Reply], channel: FrameChannel, elapsed_s: float) -> None:
    if elapsed_s < LIMIT_S:
        assert (await calling).payload == b"y"
    else:
        with pytest.raises(ChannelClosed):
            await calling
        assert "late" in str(channel.cause)


async def _never(_: bytes) -> None:
    raise AssertionError("it is the clock that sends")


def framed(call: bytes, payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + call[4:HEADER_BYTES] + payload
