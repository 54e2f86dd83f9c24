"""Hand-made streams, good and bad: what no honest tar would write must be written by hand."""

from collections.abc import Iterator
from itertools import pairwise

from sandbox.wire.harvest import BLOCK

END = bytes(2 * BLOCK)


def pieces(stream: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(stream), size):
        yield stream[start : start + size]


def cut_at(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces that begin at the places given, each taken modulo its length; some may be empty."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def sealed(block: bytes | bytearray) -> bytes:
    """A header block with its checksum put right."""
    summed = bytes(block[:148]) + b" " * 8 + bytes(block[156:512])
    return bytes(block[:148]) + b"%06o\0 " % sum(summed) + bytes(block[156:512])


def header(name: bytes, size: int | bytes = 0, kind: bytes = b"0", prefix: bytes = b"") -> bytes:
    block = bytearray(BLOCK)
    block[: len(name)] = name
    block[100:108] = b"0000644\0"
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[156:157] = kind
    block[257:265] = b"ustar\00000"
    block[345 : 345 + len(prefix)] = prefix
    return sealed(block)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def member(name: bytes, data: bytes = b"", kind: bytes = b"0", prefix: bytes = b"") -> bytes:
    return header(name, len(data), kind, prefix) + padded(data)


def pax(*records: tuple[bytes, bytes]) -> bytes:
    return member(b"pax", b"".join(pax_record(key, value) for key, value in records), b"x")


def pax_record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return b"%d" % length + rest


def frame(payload: bytes, nonce: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + nonce + payload


def attached(stream: int, payload: bytes) -> bytes:
    """A payload as Docker's attach stream carries it."""
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload
