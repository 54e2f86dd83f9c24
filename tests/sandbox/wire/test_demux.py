"""The engine's attach stream, taken apart."""

import pytest

from sandbox.errors import Unavailable
from sandbox.wire.demux import Demultiplexer, Stream
from tests.sandbox.wire.streams import attached, pieces


def taken(parts: list[bytes]) -> list[tuple[Stream, bytes]]:
    """What came, with neighbours of the same stream joined: pieces have no meaning of their own."""
    demultiplexer = Demultiplexer()
    joined: list[tuple[Stream, bytes]] = []
    for part in parts:
        for stream, piece in demultiplexer.feed(part):
            if joined and joined[-1][0] is stream:
                joined[-1] = (stream, joined[-1][1] + bytes(piece))
            else:
                joined.append((stream, bytes(piece)))
    return joined


STREAM = attached(1, b"out") + attached(2, b"err\x00\x01") + attached(1, b"") + attached(1, bytes(300))
TAKEN = [(Stream.STDOUT, b"out"), (Stream.STDERR, b"err\x00\x01"), (Stream.STDOUT, bytes(300))]


def test_split_at_every_byte() -> None:
    """Both streams come apart the same, wherever the engine's stream was cut."""
    for place in range(len(STREAM) + 1):
        assert taken([STREAM[:place], STREAM[place:]]) == TAKEN
    assert taken(list(pieces(STREAM, 1))) == TAKEN


def test_payloads_are_handed_on_as_they_come() -> None:
    """A header that announces gigabytes costs nothing: its payload is not waited for."""
    demultiplexer = Demultiplexer()
    assert list(demultiplexer.feed(b"\x01\0\0\0\xff\xff\xff\xff")) == []
    assert [bytes(piece) for _, piece in demultiplexer.feed(b"first")] == [b"first"]
    assert [bytes(piece) for _, piece in demultiplexer.feed(b"second")] == [b"second"]


@pytest.mark.parametrize("start", [b"\x00\0\0\0", b"\x03\0\0\0", b"\x01\0\0\1", b"\x02\1\0\0", b"HTTP"])
def test_other_streams_are_the_providers_fault(start: bytes) -> None:
    """What is no multiplexed stream is Unavailable, with a hint at the cause."""
    with pytest.raises(Unavailable, match="DOCKER_HOST"):
        taken([start + b"\0\0\0\1x"])
