"""A large reply of one chamber that is handed to another while it comes."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from sandbox import Channel, Ending, Forwarding, Incoming, Job, Limits, Mode, Refused, Reply
from tests.sandbox.scripted import Played, play, settled

RELAY = Job(command=("serve",), mode=Mode.RELAY)
PATIENT = 20.0
LARGE = b"S" + bytes(range(256)) * 8192
HALF = len(LARGE) // 2


class Pair:
    """Both chambers, and the channels into them; `over` ends both talks."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.channels: list[Forwarding] = []
        self.sender: Played
        self.receiver: Played

    async def seat(self, receiver: Job = RELAY) -> None:
        async def talk(channel: Channel) -> None:
            assert isinstance(channel, Forwarding)
            self.channels.append(channel)
            await self.over.wait()

        self.sender = await play(RELAY, talk=talk)
        self.sender.hold.out(b"unpacked 0\n")
        await settled()
        self.receiver = await play(receiver, talk=talk)
        self.receiver.hold.out(b"unpacked 0\n")
        await settled()
        for played in (self.sender, self.receiver):
            assert await played.hold.link.read(3) == b"go\n"

    async def comes(self, part: int = HALF) -> Incoming:
        """A large reply, of which so much is here."""
        incoming = await (await self.begun(part=part))
        assert isinstance(incoming, Incoming)
        return incoming

    async def begun(self, data: bytes = LARGE, part: int = HALF) -> "asyncio.Task[Reply | Incoming]":
        """The sender is asked, and has said so much of its reply."""
        asking = asyncio.create_task(self.channels[0].call_ahead(b"?", PATIENT, b"S"))
        header = await self.sender.hold.link.read(12)
        await self.sender.hold.link.read(1)
        self.sender.hold.out(len(data).to_bytes(4, "big") + header[4:] + data[:part])
        await settled()
        return asking


@pytest.fixture
async def pair() -> Pair:
    it = Pair()
    await it.seat()
    return it


@pytest.mark.parametrize("part", [1, 2, HALF])
async def test_it_is_handed_on_before_it_is_whole(pair: Pair, part: int) -> None:
    """Without its first byte, which says that it may be, wherever it was cut; the answer comes when it is there."""
    incoming = await pair.comes(part)
    assert (incoming.kind, incoming.length, incoming.whole) == (b"S", len(LARGE) - 1, False)
    forwarding = asyncio.create_task(pair.channels[1].forward(incoming, PATIENT))
    header = await pair.receiver.hold.link.read(12)
    assert int.from_bytes(header[:4], "big") == len(LARGE) - 1
    assert await pair.receiver.hold.link.read(part - 1) == LARGE[1:part]
    pair.sender.hold.out(LARGE[part:])
    assert await pair.receiver.hold.link.read(len(LARGE) - part) == LARGE[part:]
    pair.receiver.hold.out((3).to_bytes(4, "big") + header[4:] + b"yes")
    reply = await forwarding
    assert (reply.payload, incoming.whole) == (b"yes", True)
    pair.over.set()
    assert [await it.ending() for it in (pair.sender, pair.receiver)] == [Ending.COMPLETED] * 2


async def test_the_next_call_of_the_sender(pair: Pair) -> None:
    """Goes on as ever once all of it is here."""
    incoming = await pair.comes(len(LARGE))
    assert incoming.whole
    asking = asyncio.create_task(pair.channels[0].call(b"next", PATIENT))
    await pair.sender.hold.reply(b"there")
    assert (await asking).payload == b"there"
    pair.over.set()
    assert await pair.sender.ending() is Ending.COMPLETED


@pytest.mark.parametrize("data", [b"S" + bytes(1000), b"C" + bytes(len(LARGE))])
async def test_what_is_small_or_of_another_kind_comes_whole(pair: Pair, data: bytes) -> None:
    asking = await pair.begun(data, part=10)
    assert not asking.done()
    pair.sender.hold.out(data[10:])
    reply = await asking
    assert isinstance(reply, Reply)
    assert reply.payload == data


async def test_waiting_for_the_sender_is_not_the_receivers_time(pair: Pair) -> None:
    """What it waited is told, and taken off the receiver's time."""
    incoming = await pair.comes()
    started = time.monotonic()
    forwarding = asyncio.create_task(pair.channels[1].forward(incoming, PATIENT))
    header = await pair.receiver.hold.link.read(12)
    await pair.receiver.hold.link.read(HALF - 1)
    await settled()  # what comes next is waited for
    await asyncio.sleep(0.1)
    pair.sender.hold.out(LARGE[HALF:])
    await pair.receiver.hold.link.read(len(LARGE) - HALF)
    pair.receiver.hold.out((3).to_bytes(4, "big") + header[4:] + b"yes")
    reply = await forwarding
    assert incoming.waited_s > 0.05
    assert reply.elapsed_s + incoming.waited_s <= time.monotonic() - started
    pair.over.set()


async def _dies(it: Pair) -> None:
    it.sender.hold.link.end()


async def _says_more(it: Pair) -> None:
    it.sender.hold.out(LARGE[HALF:] + b"more")


@pytest.mark.parametrize(
    ("act", "ending"), [(_dies, Ending.FAILED), (_says_more, Ending.PROTOCOL)], ids=["dies", "says more"]
)
async def test_a_sender_that_breaks_off_ends_its_own_chamber(
    pair: Pair, act: Callable[[Pair], Awaitable[None]], ending: Ending
) -> None:
    """The receiver's call waits, and is ended by the one who holds both."""
    incoming = await pair.comes()
    forwarding = asyncio.create_task(pair.channels[1].forward(incoming, PATIENT))
    await act(pair)
    assert await pair.sender.ending() is ending
    forwarding.cancel()
    pair.over.set()
    assert await pair.receiver.ending() is Ending.COMPLETED


async def test_more_than_the_receiver_takes_is_refused() -> None:
    """Before a byte of it is sent."""
    pair = Pair()
    await pair.seat(Job(command=("serve",), mode=Mode.RELAY, limits=Limits(frame_bytes=1 << 20)))
    incoming = await pair.comes()
    with pytest.raises(Refused, match="raise frame_bytes"):
        await pair.channels[1].forward(incoming, PATIENT)
    pair.over.set()
