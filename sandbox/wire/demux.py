"""Docker's multiplexed attach stream: eight header bytes, then a payload of either output stream.

The headers come from the engine, not from the chamber; payloads are handed on in pieces as they arrive, so a
header that announces gigabytes costs nothing.
"""

from collections.abc import Iterator
from enum import IntEnum

from sandbox.errors import Unavailable


class Stream(IntEnum):
    STDOUT = 1
    STDERR = 2


class Demultiplexer:
    """Feed it what the engine sends; it yields (stream, piece)."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._stream = Stream.STDOUT
        self._left = 0

    def feed(self, data: bytes | memoryview) -> Iterator[tuple[Stream, memoryview]]:
        view = memoryview(data)
        while view:
            if not self._left:
                wanted = 8 - len(self._header)
                self._header += view[:wanted]
                view = view[wanted:]
                if len(self._header) == 8:
                    self._open_payload()
                continue
            piece, view = view[: self._left], view[self._left :]
            self._left -= len(piece)
            yield self._stream, piece

    def _open_payload(self) -> None:
        kind = self._header[0]
        if kind not in (Stream.STDOUT, Stream.STDERR) or any(self._header[1:4]):
            raise Unavailable("the engine's attach stream is not multiplexed as Docker's is; check DOCKER_HOST")
        self._stream = Stream(kind)
        self._left = int.from_bytes(self._header[4:], "big")
        self._header.clear()
