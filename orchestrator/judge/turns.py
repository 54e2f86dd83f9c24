"""One side of a meeting while it is asked: its channel, and the time that its own turns have left."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from sandbox import Channel, Forwarding, Incoming, Reply, Silent

# Of a request that is handed to the candidate while it comes. Nobody takes its time: it has the judge's in it.
STREAMED = b"S"
# Our own timeout comes first, the channel's only if the event loop is late.
_LATER_S = 60.0
# Whether a reply was late is told by the time that it took. It may have been asked for, or heard, so much later: a call
# that the clock has not sent by then has failed.
HEARD_S = 5.0


class TooLate(Exception):
    """One side has used up its time."""


@asynccontextmanager
async def deadline(limit: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise TooLate from None


class Turn:
    """One side's channel with the time that it has left. `is_timed`: what a call takes is the measure of it."""

    def __init__(self, channel: Channel, wall_s: float, *, is_timed: bool = False) -> None:
        self._channel = channel
        self._forwarding = channel if isinstance(channel, Forwarding) else None
        self._is_timed = is_timed
        self.left_s = wall_s

    async def ask(self, payload: bytes) -> Reply:
        """Raises TooLate, ChannelClosed where its chamber has ended, and Silent where no time could be taken."""
        async with deadline(self.left_s + HEARD_S):
            reply = await self._channel.call(payload, self.left_s + _LATER_S)
        return self._taken(reply)

    async def ask_ahead(self, payload: bytes) -> Reply | Incoming:
        """As `ask`; what is to be handed on may be still on its way."""
        if self._forwarding is None:
            return await self.ask(payload)
        started = time.monotonic()
        async with deadline(self.left_s):
            reply = await self._forwarding.call_ahead(payload, self.left_s + _LATER_S, STREAMED)
        if isinstance(reply, Reply):
            return self._taken(reply)
        self.left_s -= time.monotonic() - started
        return reply

    async def forward(self, payload: Incoming, sender_s: float) -> Reply:
        """As `ask`, with what is still on its way; the sender may be waited for so long."""
        channel = cast("Forwarding", self._forwarding)  # see can_forward
        limit = self.left_s + sender_s
        async with deadline(limit):
            reply = await channel.forward(payload, limit + _LATER_S)
        return self._taken(reply)

    @property
    def can_forward(self) -> bool:
        return self._forwarding is not None

    def _taken(self, reply: Reply) -> Reply:
        if self._is_timed and reply.silent_s:
            raise Silent(
                f"the provider was silent for {reply.silent_s:.1f} s of a call, which says nothing of its time"
            )
        self.left_s -= reply.elapsed_s
        if self.left_s <= 0:
            raise TooLate
        return reply
