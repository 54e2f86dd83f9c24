"""Who may run beside whom on one machine.

Chambers of two realms share no file, but while both run they can still signal: by locks on what the kernel has one of,
by counters, by the processors. So a chamber that holds held-out data runs alone: it waits for those that run, and
all that come after it wait for its end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HELDOUT = "heldout"
HIDDEN = "trial"


class Turns:
    """Any number side by side, or one alone; who waits to be alone goes first, else it might wait for ever."""

    def __init__(self) -> None:
        self._running = 0
        self._alone = False
        self._waiting = 0
        self._changed = asyncio.Event()

    @property
    def is_taken(self) -> bool:
        """Whether one that comes now has to wait."""
        return self._alone or self._waiting > 0

    @asynccontextmanager
    async def take(self, realm: str) -> AsyncIterator[None]:
        alone = realm == HELDOUT
        await (self._begin_alone() if alone else self._begin())
        try:
            yield
        finally:
            if alone:
                self._alone = False
            else:
                self._running -= 1
            self._wake()

    async def _begin(self) -> None:
        while self.is_taken:
            await self._changed.wait()
        self._running += 1

    async def _begin_alone(self) -> None:
        self._waiting += 1
        try:
            while self._alone or self._running:
                await self._changed.wait()
            self._alone = True
        finally:
            self._waiting -= 1
            self._wake()

    def _wake(self) -> None:
        """Everybody looks again, and waits for the next change."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
