"""Calls into a chamber in relay mode."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn

from sandbox.errors import Refused, Unavailable
from sandbox.happenings import Happening
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader, Reply, encode_header

Send = Callable[[bytes], Awaitable[None]]
Meter = Callable[[], Awaitable[float | None]]
Silences = Callable[[float], float]
# A larger payload is sent as it is, without copying it behind its header.
SMALL = 65_536


class ChannelClosed(Exception):
    """The chamber behind a channel has ended; its outcome says how."""


class FrameChannel:
    """Calls into a serving chamber, one at a time, timed by our own clock: `arrival` is when the last bytes came.

    `silence` tells for how long the provider itself was silent since a moment. `given_up`: its caller did not wait for
    a reply.
    """

    def __init__(
        self,
        send: Send,
        frame_bytes: int,
        frames: int,
        meter: Meter | None = None,
        arrival: Callable[[], float] = time.monotonic,
        silence: Silences = lambda _: 0.0,
    ) -> None:
        self._send = send
        self._arrival = arrival
        self._meter = meter
        self._silence = silence
        self._cap = frame_bytes
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[tuple[float, bytes]] | None = None
        self._closed = False
        self.given_up = False
        self._end: Happening | None = None
        self.cause: Happening | None = None
        self.reader = FrameReader(self._arrived, frame_bytes, frames)

    @property
    def busy(self) -> bool:
        """Whether a call waits for its reply."""
        return self._waiting is not None

    async def call(self, payload: bytes, timeout: float) -> Reply:
        """Send one frame and wait for its reply; raises ChannelClosed when the chamber ends first.

        A call that its caller gives up closes the channel: the reply could no longer be told from the next one's.
        """
        if len(payload) > self._cap:
            raise Refused(f"a frame of {len(payload)} bytes; the cap is {self._cap}, raise frame_bytes")
        async with self._turn:
            if self._end and not self._closed:
                self._fail(self._end)
            if self._closed:
                raise ChannelClosed
            try:
                return await self._ask(payload, timeout)
            except TimeoutError:
                self._fail(WireFault(Fault.FRAME_LATE, f"no reply within {timeout:g} s"))
            except (WireFault, Unavailable) as cause:
                self._fail(cause)
            except asyncio.CancelledError:
                self._closed = self.given_up = True
                raise
            finally:
                self._waiting = None

    async def processor_seconds(self) -> float | None:
        return await self._meter() if self._meter and not self._closed else None

    async def _ask(self, payload: bytes, timeout: float) -> Reply:
        nonce = secrets.token_bytes(8)
        self.reader.await_reply(nonce)
        self._waiting = asyncio.get_running_loop().create_future()
        started = time.monotonic()
        async with asyncio.timeout(timeout):
            if len(payload) < SMALL:
                await self._send(encode_header(nonce, len(payload)) + payload)
            else:
                await self._send(encode_header(nonce, len(payload)))
                await self._send(payload)
            arrived, reply = await self._waiting
        return Reply(reply, arrived - started, self._silence(started))

    def end(self, cause: Happening) -> None:
        """The chamber fell silent while nobody waited: the next call, if there is one, fails by this."""
        self._end = cause

    def close(self) -> None:
        self._closed = True

    def _fail(self, cause: Happening) -> NoReturn:
        self._closed = True
        self.cause = cause
        raise ChannelClosed

    def _arrived(self, payload: bytes) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result((self._arrival(), payload))
