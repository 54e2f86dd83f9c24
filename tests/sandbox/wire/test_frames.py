"""Frames: only what was asked for passes, whole."""

import pytest

from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader, Taker, encode_header
from tests.sandbox.wire.streams import frame, pieces

NONCE = b"\x00noncen\xff"
OTHER = b"othernon"


class Caller:
    """Keeps the frames that came, and asks again for as many as it was told to."""

    def __init__(self, nonces: list[bytes], payload_cap: int = 64, count_cap: int = 10) -> None:
        self.frames: list[bytes] = []
        self._nonces = list(nonces)
        self.reader = FrameReader(self._arrived, payload_cap, count_cap)
        self._ask()

    def _ask(self) -> None:
        if self._nonces:
            self.reader.await_reply(self._nonces.pop(0))

    def _arrived(self, payload: bytes) -> None:
        self.frames.append(payload)
        self._ask()


def fault_of(caller: Caller, stream: bytes, piece: int = 1000) -> Fault:
    with pytest.raises(WireFault) as caught:
        read(caller, stream, piece)
    return caught.value.fault


def read(caller: Caller, stream: bytes, piece: int) -> None:
    for part in pieces(stream, piece):
        caller.reader.feed(part)
    caller.reader.finish()


def test_split_at_every_byte() -> None:
    """Frames come whole, wherever the stream was cut; one of no bytes too, without waiting for more."""
    assert encode_header(NONCE, 3) + b"abc" == frame(b"abc", NONCE)
    stream = frame(b"first", NONCE) + frame(b"", OTHER) + frame(b"\n" * 40, NONCE) + frame(b"", OTHER)
    expected = [b"first", b"", b"\n" * 40, b""]
    for place in range(len(stream) + 1):
        caller = Caller([NONCE, OTHER, NONCE, OTHER])
        caller.reader.feed(stream[:place])
        caller.reader.feed(stream[place:])
        caller.reader.finish()
        assert caller.frames == expected
    caller = Caller([NONCE, OTHER, NONCE, OTHER])
    read(caller, stream, 1)
    assert caller.frames == expected


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_wrong_nonce(piece: int) -> None:
    """A reply that does not echo the nonce of its request was made before the question."""
    nearly = [NONCE[:place] + b"?" + NONCE[place + 1 :] for place in range(len(NONCE))]
    for nonce in (OTHER, *nearly):
        caller = Caller([NONCE])
        assert fault_of(caller, frame(b"x", nonce), piece) is Fault.FRAME_NONCE
        assert caller.frames == []


@pytest.mark.parametrize("piece", [1, 5, 1000])
def test_frame_that_nobody_asked_for(piece: int) -> None:
    """A frame before the first question, or a second answer to it, is extra from its first byte on."""
    assert fault_of(Caller([]), frame(b"x", NONCE), piece) is Fault.FRAME_EXTRA
    assert fault_of(Caller([]), b"\0") is Fault.FRAME_EXTRA
    caller = Caller([NONCE])
    assert fault_of(caller, frame(b"x", NONCE) * 2, piece) is Fault.FRAME_EXTRA
    assert caller.frames == [b"x"]


def test_asking_within_a_frame() -> None:
    """A question that finds half a frame there has been answered too early."""
    caller = Caller([NONCE])
    caller.reader.feed(frame(b"abc", NONCE)[:13])
    with pytest.raises(WireFault) as caught:
        caller.reader.await_reply(OTHER)
    assert caught.value.fault is Fault.FRAME_EXTRA


def test_caps_are_exact() -> None:
    """As many bytes and frames as the caps pass; one more is refused, a byte at the header."""
    caller = Caller([NONCE], payload_cap=7)
    caller.reader.feed(frame(b"1234567", NONCE))
    assert caller.frames == [b"1234567"]
    for start in (frame(b"12345678", NONCE)[:12], b"\xff\xff\xff\xff" + NONCE):
        assert fault_of(Caller([NONCE], payload_cap=7), start) is Fault.FRAME_OVERSIZED
    caller = Caller([NONCE, OTHER, NONCE], count_cap=2)
    assert fault_of(caller, frame(b"a", NONCE) + frame(b"b", OTHER) + frame(b"c", NONCE)) is Fault.FRAME_LIMIT
    assert caller.frames == [b"a", b"b"]


def test_half_a_frame_at_the_end() -> None:
    """A stream that ends within a frame, header or payload, has ended early; between frames it has not."""
    whole = frame(b"abc", NONCE)
    for length in range(1, len(whole)):
        assert fault_of(Caller([NONCE]), whole[:length]) is Fault.ENDED_EARLY
    caller = Caller([NONCE])
    caller.reader.finish()
    caller.reader.feed(whole)
    caller.reader.finish()


def test_a_taker_gets_every_byte_wherever_the_stream_was_cut() -> None:
    """It is asked with the length and the first bytes; its frame is not kept, and the next one comes whole."""
    payload = bytes(range(40))
    first = frame(payload, NONCE)
    for place in range(len(first) + 1):
        asked: list[tuple[int, bytes]] = []
        taken, whole = bytearray(), list[bytes]()

        def begin(
            length: int, start: bytes, asked: list[tuple[int, bytes]] = asked, to: bytearray = taken
        ) -> Taker | None:
            asked.append((length, start[:1]))
            return to.extend if length == len(payload) else None

        reader = FrameReader(whole.append, 64, 10, begin)
        reader.await_reply(NONCE)
        reader.feed(first[:place])
        reader.feed(first[place:])
        reader.await_reply(OTHER)
        reader.feed(frame(b"next", OTHER))
        reader.finish()
        assert (bytes(taken), whole, asked) == (payload, [b"next"], [(40, b"\0"), (4, b"n")])


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        (frame(bytes(40), NONCE)[:-1], Fault.ENDED_EARLY),
        (frame(bytes(65), NONCE), Fault.FRAME_OVERSIZED),
        (frame(bytes(40), OTHER), Fault.FRAME_NONCE),
        (frame(bytes(40), NONCE) + b"\0", Fault.FRAME_EXTRA),
    ],
)
def test_a_frame_that_is_taken_must_be_whole_and_asked_for(stream: bytes, fault: Fault) -> None:
    """The same faults as for one that is kept."""
    caller = Caller([NONCE])
    taken: list[bytes] = []
    caller.reader = FrameReader(taken.append, 64, 10, lambda _length, _first: taken.append)
    caller.reader.await_reply(NONCE)
    assert fault_of(caller, stream) is fault
