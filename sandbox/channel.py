"""Calls into a chamber in relay mode."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from sandbox.errors import Refused, Unavailable
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader, Reply, encode_header

Send = Callable[[bytes], Awaitable[None]]
Cause = WireFault | Unavailable


class ChannelClosed(Exception):
    """The chamber behind a channel has ended; its outcome says how."""


class FrameChannel:
    """Calls into a serving chamber, one at a time, timed by our own clock."""

    def __init__(self, send: Send, note: Callable[[Cause], None], frame_bytes: int, frames: int) -> None:
        self._send = send
        self._note = note
        self._cap = frame_bytes
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[tuple[float, bytes]] | None = None
        self._closed = False
        self.cause: Cause | None = None
        self.reader = FrameReader(self._arrived, frame_bytes, frames)

    async def call(self, payload: bytes, timeout: float) -> Reply:
        """Send one frame and wait for its reply; raises ChannelClosed when the chamber ends first."""
        if len(payload) > self._cap:
            raise Refused(f"a frame of {len(payload)} bytes; the cap is {self._cap}, raise frame_bytes")
        async with self._turn:
            if self._closed:
                raise ChannelClosed
            nonce = secrets.token_bytes(8)
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                self.reader.await_reply(nonce)
                started = time.monotonic()
                async with asyncio.timeout(timeout):
                    await self._send(encode_header(nonce, len(payload)) + payload)
                    arrived, reply = await self._waiting
            except TimeoutError:
                self._fail(WireFault(Fault.FRAME_LATE, f"no reply within {timeout:g} s"))
            except WireFault as fault:
                self._fail(fault)
            except Unavailable as error:
                self._fail(error)
            return Reply(reply, arrived - started)

    def close(self) -> None:
        self._closed = True

    def _fail(self, cause: Cause) -> NoReturn:
        self._closed = True
        self.cause = cause
        self._note(cause)
        raise ChannelClosed from cause

    def _arrived(self, payload: bytes) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result((time.monotonic(), payload))
