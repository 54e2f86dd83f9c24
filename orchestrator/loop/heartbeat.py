"""The heartbeat of a trial that tells of its steps: one that began to, and then is silent for too long, is ended.

A step is the candidate's own word. So it can bring the end forward and never put it off: the limit on the wall clock
does not hear it.
"""

import asyncio
import time

# Of the limit: so long a step that came in time may lie about where our own event loop was late.
_LATE = 0.1


class Silence:
    """Since when nothing was heard. Pure: the caller has the clock."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._last: float | None = None

    def beat(self, now: float) -> None:
        self._last = now

    def left(self, now: float) -> float | None:
        """Seconds until it is too long; None before the first step."""
        return None if self._last is None else self._last + self.limit_s - now


class Heartbeat:
    """Of one trial. Each step costs a look at the clock and no more, however many there are."""

    def __init__(self, limit_s: float) -> None:
        self._silence = Silence(limit_s)
        self._began = asyncio.Event()

    @property
    def words(self) -> str:
        return f"no report for {self._silence.limit_s:g} s"

    def beat(self) -> None:
        self._silence.beat(time.monotonic())
        self._began.set()

    async def stopped(self) -> None:
        """Returns once it fell silent; never for a trial that told of no step."""
        await self._began.wait()
        while (left := self._left()) > 0:
            await asyncio.sleep(left)
            if self._left() <= 0:
                await asyncio.sleep(self._silence.limit_s * _LATE)

    def _left(self) -> float:
        return self._silence.left(time.monotonic()) or 0.0
