"""Whether the provider itself answers, asked every few seconds while chambers run.

What is asked has nothing to do with any chamber, so nothing inside one can keep it from being answered. A silence is
therefore evidence from outside: what our own clock, or the end of a stream, says of a program meanwhile proves nothing.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from sandbox.errors import Denied, Lost, SandboxError, Silent, TakenAway, Unavailable
from sandbox.happenings import NotDelivered
from sandbox.logger import logger

EVERY_S = 3.0
WITHIN_S = 5.0
# Beyond a beat that is due: so late only a process is that stood still, or a machine that slept.
STILL_S = 15.0
# Turns of the event loop within which an answer that is there is heard, however late the loop itself was.
CATCH_UP = 8
_REMEMBERED = 256
# These say already that nobody inside brought it about.
_FROM_OUTSIDE = (Denied, NotDelivered, Silent, TakenAway)


class Pulse:
    """`ask` raises a SandboxError without an answer, `reset` drops what it keeps from one question to the next.

    All times are of `time.monotonic`. Time in which we ourselves stood still counts as silence: nobody was heard in it.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[None]],
        patience_s: float,
        every_s: float = EVERY_S,
        within_s: float = WITHIN_S,
        reset: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask = ask
        self._reset = reset
        self._every_s = every_s
        self._within_s = within_s
        self.patience_s = patience_s
        self._silences: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self._heard = time.monotonic()
        self._is_silent = False
        self._watchers = 0
        self._askers = 0
        self._beating: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """For as long as somebody may have to know."""
        self._watchers += 1
        if self._watchers == 1:
            self._begin()
            self._beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            self._watchers -= 1
            if self._watchers == 0 and self._beating:
                self._beating.cancel()

    def silence(self, since: float) -> float:
        """For how many seconds since then nobody answered, as far as is known now."""
        now = time.monotonic()
        spans = [*self._silences, *([(self._heard, now)] if self._is_silent or self._stood_still(now) else [])]
        return sum(max(0.0, end - max(begin, since)) for begin, end in spans)

    async def silence_until_it_answers(self, since: float) -> float:
        """The same, asked again; a provider that is away is waited for, within our patience.

        Where nobody watched, only what is heard from now on is known.
        """
        if not (self._watchers or self._askers):
            self._begin()
        self._askers += 1
        try:
            until = time.monotonic() + self.patience_s
            while True:
                if await self._look() or time.monotonic() >= until:
                    return self.silence(since)
                await asyncio.sleep(min(self._every_s, self._within_s) / 5)
        finally:
            self._askers -= 1

    async def whose(self, error: SandboxError, since: float) -> SandboxError:
        """What to raise for a failure of a chamber: the error, or Silent where the provider itself was silent."""
        if not isinstance(error, Unavailable | Lost) or isinstance(error, _FROM_OUTSIDE):
            return error
        if not (seconds := await self.silence_until_it_answers(since)):
            return error
        silent = Silent(f"{error}; the provider did not answer for {seconds:.0f} s meanwhile")
        silent.usd, silent.unended, silent.chamber = error.usd, error.unended, error.chamber
        return silent

    def _begin(self) -> None:
        """A line may have broken while nobody watched, and that is no silence; from here on every end of it is."""
        if not self._askers:
            self._reset()
        self._heard, self._is_silent = time.monotonic(), False

    async def _beat(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(self._every_s)

    async def _look(self) -> bool:
        async with self._turn:
            why = await self._asked()
            if why is not None:
                if not self._is_silent:
                    logger().warning("provider.silent", reason=why)
                self._is_silent = True
                return False
            now = time.monotonic()
            if self._is_silent or self._stood_still(now):
                self._silences.append((self._heard, now))
                logger().warning("provider.answers", after_s=round(now - self._heard, 1))
            self._heard, self._is_silent = now, False
            return True

    def _stood_still(self, now: float) -> bool:
        return self._watchers > 0 and now - self._heard > self._every_s + self._within_s + STILL_S

    async def _asked(self) -> str | None:
        """Why there was no answer; None when there was one."""
        asking = asyncio.ensure_future(self._ask())
        asking.add_done_callback(_forget)
        try:
            await asyncio.wait([asking], timeout=self._within_s)
            for _ in range(CATCH_UP):
                if asking.done():
                    break
                await asyncio.sleep(0)
            if not asking.done():
                return "no answer in time"
            asking.result()
        except SandboxError as error:
            return str(error)
        finally:
            asking.cancel()
        return None


def _forget(asking: "asyncio.Future[None]") -> None:
    """What comes of a question that is given up is nobody's."""
    if not asking.cancelled():
        asking.exception()
