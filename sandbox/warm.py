"""Chambers created and started ahead of need, each used once.

How many to keep follows demand: enough to cover what is asked for while a new one is being made, never more than
the cap, and none once nobody has asked for a while. Starting ahead hides latency; it does not raise throughput.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sandbox.errors import SandboxError
from sandbox.logger import logger
from sandbox.purse import NotPaid

MEMORY = 16


class Demand:
    """How many to keep ready, from when they were asked for and how long one takes to make. Pure."""

    def __init__(self, cap: int, idle_s: float) -> None:
        self._cap = cap
        self._idle_s = idle_s
        self._asked: deque[float] = deque(maxlen=MEMORY)
        self._making_s = 0.5

    def asked(self, now: float) -> None:
        self._asked.append(now)

    def made(self, seconds: float) -> None:
        self._making_s += 0.3 * (seconds - self._making_s)

    def target(self, now: float) -> int:
        if not self._asked or now - self._asked[-1] > self._idle_s:
            return 0
        span = max(now - self._asked[0], 0.001)
        rate = (len(self._asked) - 1) / span
        return min(self._cap, 1 + math.ceil(rate * self._making_s))


class Warmable(Protocol):
    @property
    def broken(self) -> bool: ...

    async def kill(self) -> None: ...


W = TypeVar("W", bound=Warmable)


@dataclass
class _Shelf(Generic[W]):
    ahead: Callable[[], Awaitable[W]]
    demand: Demand
    ready: deque[W] = field(default_factory=deque)
    making: int = 0


class WarmPool(Generic[W]):
    """Shelves of ready chambers, one a shape."""

    def __init__(
        self,
        cap: int,
        idle_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        head_start_s: float = 0.0,
    ) -> None:
        self._cap = cap
        self._head_start_s = head_start_s
        self._idle_s = idle_s
        self._clock = clock
        self._shelves: dict[Hashable, _Shelf[W]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def ready(self) -> int:
        return sum(len(shelf.ready) for shelf in self._shelves.values())

    async def take(
        self,
        shape: Hashable,
        make: Callable[[], Awaitable[W]],
        ahead: Callable[[], Awaitable[W]] | None = None,
    ) -> W:
        """A ready chamber of this shape, or a new one; more are made behind the caller's back.

        `ahead` makes those, where somebody else pays for what only waits.
        """
        if not self._cap:
            return await make()
        shelf = self._shelves.setdefault(shape, _Shelf(ahead or make, Demand(self._cap, self._idle_s)))
        shelf.demand.asked(self._clock())
        found = await self._pop_healthy(shelf)
        if found and self._head_start_s:
            self._spawn(self._refill_later(shelf))
        else:
            self._refill(shelf)
        return found or await self._timed_make(shelf, make)

    async def sweep(self) -> None:
        """Bring every shelf down to what its demand still asks for, and replace the broken."""
        for shape, shelf in list(self._shelves.items()):
            target = shelf.demand.target(self._clock())
            broken = [item for item in shelf.ready if item.broken]
            shelf.ready = deque(item for item in shelf.ready if not item.broken)
            for item in broken:
                await item.kill()
            while len(shelf.ready) > target:
                await shelf.ready.popleft().kill()
            self._refill(shelf)
            if not target and not shelf.ready and not shelf.making:
                self._shelves.pop(shape, None)

    async def close(self) -> None:
        self._cap = 0
        if self._sweeper:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self.empty()

    async def empty(self) -> None:
        """End all that is ready or being made; what is asked for afterwards is made again."""
        shelves, self._shelves = self._shelves, {}
        making = list(self._tasks)
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        for shelf in shelves.values():
            while shelf.ready:
                await shelf.ready.pop().kill()

    async def _pop_healthy(self, shelf: _Shelf[W]) -> W | None:
        while shelf.ready:
            found = shelf.ready.popleft()
            if not found.broken:
                return found
            await found.kill()
        return None

    def _in_use(self, shelf: _Shelf[W]) -> bool:
        """Not one that was emptied while somebody still worked on it."""
        return any(other is shelf for other in self._shelves.values())

    def _refill(self, shelf: _Shelf[W]) -> None:
        if not self._in_use(shelf):
            return
        room = self._cap - sum(len(other.ready) + other.making for other in self._shelves.values())
        missing = shelf.demand.target(self._clock()) - len(shelf.ready) - shelf.making
        for _ in range(min(room, missing)):
            shelf.making += 1
            self._spawn(self._stock(shelf))
        if self._cap and not self._sweeper:
            self._sweeper = asyncio.create_task(self._sweep_for_ever())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refill_later(self, shelf: _Shelf[W]) -> None:
        """Making a chamber takes a whole core for a while; the trial that just got one goes first."""
        await asyncio.sleep(self._head_start_s)
        self._refill(shelf)

    async def _stock(self, shelf: _Shelf[W]) -> None:
        try:
            made = await self._timed_make(shelf, shelf.ahead)
        except NotPaid as error:
            logger().debug("warm.not_made", reason=str(error))
            return
        except SandboxError as error:
            # The next to ask makes one itself, and gets this error first hand.
            logger().warning("warm.not_made", reason=str(error))
            return
        finally:
            shelf.making -= 1
        if self._cap and self._in_use(shelf):
            shelf.ready.append(made)
        else:
            await made.kill()

    async def _timed_make(self, shelf: _Shelf[W], make: Callable[[], Awaitable[W]]) -> W:
        started = self._clock()
        made = await make()
        shelf.demand.made(self._clock() - started)
        return made

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._idle_s / 4)
            try:
                await self.sweep()
            except SandboxError as error:
                logger().warning("warm.not_swept", reason=str(error))
