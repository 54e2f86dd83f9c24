"""A payload that is handed on while it comes, instead of being kept until it is whole."""

import asyncio
import time
from collections import deque


class Incoming:
    """A reply that has begun: its first byte is `kind`, and `length` bytes follow. One reader takes them, in pieces.

    The sender is never made to wait for the reader: what is not taken yet is kept, a frame at most. `waited_s` is
    for how long the reader had to wait for the sender.
    """

    def __init__(self, kind: bytes, length: int) -> None:
        self.kind = kind
        self.length = length
        self.waited_s = 0.0
        self._left = length + len(kind)
        self._pieces: deque[bytes] = deque()
        self._came = asyncio.Event()

    @property
    def whole(self) -> bool:
        """Whether all of it is here."""
        return not self._left

    def take(self, piece: bytes) -> None:
        if self._left == self.length + len(self.kind):
            piece = piece[len(self.kind) :]
            self._left -= len(self.kind)
        if piece:  # an empty one would be taken for the end
            self._left -= len(piece)
            self._pieces.append(piece)
            self._came.set()

    async def first(self) -> bytes:
        """The byte that comes next, which stays where it is; nothing at the end."""
        await self._some()
        return self._pieces[0][:1] if self._pieces else b""

    async def next(self) -> bytes:
        """What came since; nothing at the end."""
        await self._some()
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found

    async def _some(self) -> None:
        if not self._pieces and self._left:
            started = time.monotonic()
            self._came.clear()
            try:
                await self._came.wait()
            finally:
                self.waited_s += time.monotonic() - started
