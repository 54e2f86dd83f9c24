"""Frames inside a chamber, on descriptors of their own: a stray print goes to the log, a stray read finds nothing.

Four bytes of length and eight of nonce, big-endian, then the payload; an answer carries the nonce of its request.
Standard library only, Python 3.9 up.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys

__all__ = ["Ended", "Frames"]

_SET_PIPE_SIZE = 1031
_PIPE_BYTES = 1 << 20


class Ended(Exception):
    """There is nobody left to talk to."""


class Frames:
    """What comes in on stdin and goes out on stdout, once both are moved out of everybody else's way."""

    def __init__(self) -> None:
        # The chamber ends without a word: what is printed must be out by then.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file, whatever it is typed as
        self._requests = os.fdopen(os.dup(0), "rb")
        self._replies = os.dup(1)
        for descriptor in (0, 1):
            # Large arrays cross in fewer steps. A courtesy: where there is no such pipe, it goes without.
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _PIPE_BYTES)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)

    def receive(self) -> tuple[bytes, memoryview]:
        """The next request: its nonce and its payload. Raises Ended."""
        header = self._requests.read(12)
        length = int.from_bytes(header[:4], "big")
        payload = self._requests.read(length) if len(header) == 12 else b""
        if len(header) < 12 or len(payload) < length:
            raise Ended
        return header[4:], memoryview(payload)

    def send(self, nonce: bytes, *parts: bytes) -> None:
        """The answer to the request of this nonce."""
        header = sum(map(len, parts)).to_bytes(4, "big") + nonce
        waiting = [memoryview(part) for part in (header, *parts)]
        while waiting:
            written = os.writev(self._replies, waiting)
            while waiting and written >= len(waiting[0]):
                written -= len(waiting.pop(0))
            if waiting:
                waiting[0] = waiting[0][written:]
