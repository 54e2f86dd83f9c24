"""Sees every sandbox to its end: whatever was asked for is remembered until Modal has confirmed that it is gone."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sandbox.errors import SandboxError
from sandbox.logger import logger

RETRY_S = 3.0
# A create that was given up, or whose answer was lost, may take effect for this long.
IN_FLIGHT_S = 60.0


class Endable(Protocol):
    async def end(self) -> None: ...


class Finder(Protocol):
    async def find(self, name: str) -> Endable | None: ...


@dataclass
class _Record:
    given_up: float = math.inf
    sandbox: Endable | None = None
    doomed: bool = False


class Ender:
    """`on_ended` hears each name once, when its sandbox is gone for certain."""

    def __init__(self, finder: Finder, on_ended: Callable[[str], None]) -> None:
        self._finder = finder
        self._on_ended = on_ended
        self._records: dict[str, _Record] = {}
        self._again: asyncio.Task[None] | None = None

    @property
    def is_clean(self) -> bool:
        return not self._records

    def knows(self, name: str) -> bool:
        """Whether it may still exist."""
        return name in self._records

    def expect(self, name: str) -> None:
        """Before create: from here on it may exist."""
        self._records[name] = _Record()

    def made(self, name: str, sandbox: Endable) -> None:
        self._records[name].sandbox = sandbox

    def given_up(self, name: str) -> None:
        """Create failed, in whatever way: what may still come of it counts from here, not from when it was begun."""
        self._records[name].given_up = time.monotonic()

    async def end(self, name: str) -> bool:
        """Whether it is gone for certain; else it is looked for again. Raises Unavailable, and tries again too."""
        if not (record := self._records.get(name)):
            return True
        record.doomed = True
        if not self._again or self._again.done():
            self._again = asyncio.create_task(self._try_again())
        sandbox = record.sandbox or await self._finder.find(name)
        if sandbox:
            await sandbox.end()
        elif time.monotonic() - record.given_up < IN_FLIGHT_S:
            return False
        self._gone(name)
        return True

    async def sweep(self) -> None:
        doomed = [name for name, record in self._records.items() if record.doomed]
        for name, result in zip(
            doomed, await asyncio.gather(*map(self.end, doomed), return_exceptions=True), strict=True
        ):
            if isinstance(result, SandboxError):
                logger(chamber=name).warning("chamber.not_ended", reason=str(result))
            elif isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """One more try for all; what is left then is the warden's, and at last the lifetime's."""
        if self._again:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        for record in self._records.values():
            record.doomed = True
        await self.sweep()

    def _gone(self, name: str) -> None:
        if self._records.pop(name, None):
            self._on_ended(name)

    async def _try_again(self) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  whatever it is, what still costs money is tried again
                logger().warning("chambers.not_swept", error=repr(error)[:300])
