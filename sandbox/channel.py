"""Calls into a chamber in relay mode."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NoReturn, cast

from sandbox.clock import HUNG_S, CallTimes
from sandbox.errors import Refused, Unavailable
from sandbox.happenings import Happening
from sandbox.incoming import Incoming
from sandbox.units import format_size
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader, Reply, Taker, encode_header

Send = Callable[[bytes], Awaitable[None]]
Meter = Callable[[], Awaitable[float | None]]
Silences = Callable[[float], float]
# When it came, and what.
Heard = tuple[float, bytes | Incoming]
# A larger payload is sent as it is, without copying it behind its header.
SMALL = 65_536
# Turns of the event loop within which bytes that are there are heard, however late the loop itself was.
CATCH_UP = 8
# A reply is worth handing on before it is whole from so many bytes on.
LARGE = 1 << 20


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
        times: CallTimes | None = None,
    ) -> None:
        self._send = send
        self._times = times
        if times:
            times.lost = self._lose
        self._arrival = arrival
        self._meter = meter
        self._silence = silence
        self._cap = frame_bytes
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[Heard] | None = None
        self._ahead = b""
        self._incoming: Incoming | None = None
        self._closed = False
        self.given_up = False
        self._end: Happening | None = None
        self.cause: Happening | None = None
        self.reader = FrameReader(self._arrived, frame_bytes, frames, self._began)

    @property
    def busy(self) -> bool:
        """Whether a call waits for its reply, or for the rest of it."""
        return self._waiting is not None or bool(self._incoming and not self._incoming.whole)

    @property
    def unsent(self) -> Unavailable | None:
        """Why a limit that ends now is nobody's delay: the clock holds a call that it has not sent."""
        return _unsent(self._times) if self._waiting else None

    async def call(self, payload: bytes, timeout: float) -> Reply:
        """Send one frame and wait for its reply; raises ChannelClosed when the chamber ends first.

        A call that its caller gives up closes the channel: the reply could no longer be told from the next one's.
        """
        reply = await self._called(payload, len(payload), timeout, self._times)
        return cast("Reply", reply)  # nothing is wanted ahead

    async def call_ahead(self, payload: bytes, timeout: float, kind: bytes) -> Reply | Incoming:
        """As `call`. A large reply whose first byte is `kind` is given as soon as it begins, and no other call may be
        made before all of it is here.
        """
        self._ahead = kind
        try:
            return await self._called(payload, len(payload), timeout)
        finally:
            self._ahead = b""

    async def forward(self, payload: Incoming, timeout: float) -> Reply:
        """As `call`, with a payload that is still on its way. What was waited for it is not the chamber's time."""
        reply = cast("Reply", await self._called(payload, payload.length, timeout, self._times))  # as above
        return replace(reply, elapsed_s=max(0.0, reply.elapsed_s - payload.waited_s))

    async def _called(
        self, payload: bytes | Incoming, length: int, timeout: float, times: CallTimes | None = None
    ) -> Reply | Incoming:
        if length > self._cap:
            raise Refused(f"a frame of {format_size(length)}; the cap is {format_size(self._cap)}, raise frame_bytes")
        async with self._turn:
            if self._end and not self._closed:
                self._fail(self._end)
            if self._closed:
                raise ChannelClosed
            try:
                return await self._ask(payload, length, timeout, times)
            except TimeoutError:
                self._fail(_unsent(times) or WireFault(Fault.FRAME_LATE, f"no reply within {timeout:g} s"))
            except (WireFault, Unavailable) as cause:
                self._fail(cause)
            except asyncio.CancelledError:
                self._closed = self.given_up = True
                self.cause = _unsent(times)
                raise
            finally:
                self._waiting = None

    async def processor_seconds(self) -> float | None:
        return await self._meter() if self._meter and not self._closed else None

    async def _ask(
        self, payload: bytes | Incoming, length: int, timeout: float, times: CallTimes | None
    ) -> Reply | Incoming:
        nonce = secrets.token_bytes(8)
        self.reader.await_reply(nonce)
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        started = time.monotonic()
        overdue: asyncio.TimerHandle | None = None
        asked = False
        if not times:
            _look(self._times)  # its time is nobody's, and yet it is not the clock that sends it
        try:
            async with asyncio.timeout(timeout):
                header = encode_header(nonce, length)
                if isinstance(payload, Incoming):
                    _look(times)
                    await self._send(header)
                    while piece := await payload.next():
                        await self._send(piece)
                elif length < SMALL:
                    if times and times.send(header + payload):
                        overdue = asyncio.get_running_loop().call_later(HUNG_S, self._lose_unsent, times)
                    else:
                        await self._send(header + payload)
                else:
                    _look(times)
                    await self._send(header)
                    await self._send(payload)
                asked = True
                arrived, reply = await asyncio.shield(waiting)
        except TimeoutError:
            if not asked:
                raise
            arrived, reply = await self._heard_late(waiting, timeout, started, times)
        finally:
            if overdue:
                overdue.cancel()
        if isinstance(reply, Incoming):
            return reply
        return Reply(reply, arrived - _begun(started, times), self._silence(started))

    async def _heard_late(
        self, waiting: "asyncio.Future[Heard]", timeout: float, started: float, times: CallTimes | None
    ) -> Heard:
        """A limit is one of the time that is measured: the clock may have sent the call late, and our own loop may be
        late for a reply that is there.
        """
        if times and (unsent := _unsent(times)):
            times.has_not_sent(timeout)
            raise unsent
        due = _begun(started, times) + timeout
        await asyncio.wait([waiting], timeout=max(0.0, due - time.monotonic()))
        for _ in range(CATCH_UP):
            if waiting.done():
                break
            await asyncio.sleep(0)
        if not waiting.done() or waiting.result()[0] > due:
            raise TimeoutError
        return waiting.result()

    def end(self, cause: Happening) -> None:
        """The chamber fell silent while nobody waited: the next call, if there is one, fails by this."""
        self._end = cause

    def close(self) -> None:
        self._closed = True

    def _fail(self, cause: Happening) -> NoReturn:
        self._closed = True
        self.cause = cause
        raise ChannelClosed

    def _lose_unsent(self, times: CallTimes) -> None:
        if _unsent(times):
            self._lose()
            times.has_not_sent(HUNG_S)

    def _lose(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(_lost())

    def _began(self, length: int, first: bytes) -> Taker | None:
        """A taker for the reply that begins, where its caller wants it ahead."""
        if not self._ahead or length < LARGE or not first.startswith(self._ahead):
            return None
        if self._waiting is None or self._waiting.done():
            return None
        self._incoming = Incoming(self._ahead, length - len(self._ahead))
        self._waiting.set_result((self._arrival(), self._incoming))
        return self._incoming.take

    def _arrived(self, payload: bytes) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result((self._arrival(), payload))


def _look(times: CallTimes | None) -> None:
    if times:
        times.look()


def _begun(started: float, times: CallTimes | None) -> float:
    sent = times.sent if times else None
    return started if sent is None else sent


def _unsent(times: CallTimes | None) -> Unavailable | None:
    """Nobody is late with an answer to what the clock was given and has not sent."""
    return _lost() if times and times.by_clock and times.sent is None else None


def _lost() -> Unavailable:
    return Unavailable("the clock of calls ended, and nobody knows what it had sent")
