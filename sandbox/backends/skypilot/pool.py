"""Clusters that stand, each for many trials one after the other. The purse pays for them: none is made without it.

A machine that is reused is a lower tier than a fresh one: who breaks out of one chamber meets the trials that come
after. So one that was given back unclean is ended and never used again.
"""

import asyncio
import time
from dataclasses import dataclass

from sandbox.backends.skypilot.machine import Machine
from sandbox.backends.skypilot.provisioner import Ask
from sandbox.backends.skypilot.rent import Office, Rented
from sandbox.errors import SandboxError, Unavailable
from sandbox.purse import Purse


@dataclass(eq=False)
class Standing:
    """One cluster; so many seconds (`span_s`) after the last trial was submitted it ends itself."""

    name: str
    ask: Ask
    span_s: float
    purse: Purse
    rented: Rented | None = None
    busy: bool = True
    reserved: bool = False
    ending: asyncio.Task[None] | None = None

    def made(self, rented: Rented) -> None:
        self.rented = rented

    @property
    def ends(self) -> float:
        """When it is gone if nobody ends it and nothing more is submitted; 0.0 while it is not up."""
        if self.rented is None or self.rented.machine is None:
            return 0.0
        return min(self.rented.ends, self.rented.machine.submitted + self.span_s)


class Pool:
    """`spare_s` is what a trial may take on a machine besides its own time: sent, submitted, brought back."""

    def __init__(self, office: Office, most: int, lifetime_s: float, spare_s: float) -> None:
        self._office = office
        self._most = most
        self._lifetime_s = lifetime_s
        self._spare_s = spare_s
        self._standing: list[Standing] = []
        self._changed = asyncio.Condition()

    async def take(self, ask: Ask, busy_s: float, idle_s: float, purse: Purse, until: float) -> "WarmBerth | None":
        """A free machine that fits and lives long enough, else a new one. None when the purse has no room for one.

        One that comes free is waited for, `until` the event loop's clock says so; nothing is paid for that.
        """
        try:
            async with asyncio.timeout_at(until):
                item = await self._had(ask, busy_s, idle_s + self._spare_s, purse)
        except TimeoutError:
            raise Unavailable("no warm cluster came free in time; raise --standing, or lower --width") from None
        return await self._make(item) if item.rented is None else WarmBerth(self, item)

    async def _had(self, ask: Ask, busy_s: float, idle_s: float, purse: Purse) -> Standing:
        """One of ours from now on: free before, or yet to be made."""
        while True:
            async with self._changed:
                if free := self._free(ask, busy_s, idle_s):
                    free.busy = True
                    return free
                if len(self._standing) < self._most:
                    self._standing.append(Standing(self._office.name(self._lifetime_s), ask, idle_s, purse))
                    return self._standing[-1]
                # One that waits and does not fit makes room: it would only cost.
                stale = next((item for item in self._standing if not item.busy), None)
                if stale is None:
                    await self._changed.wait()
                    continue
                stale.busy = True
            await self.retire(stale)

    def _free(self, ask: Ask, busy_s: float, idle_s: float) -> Standing | None:
        for item in self._standing:
            lasts = item.ends > time.time() + busy_s + self._spare_s
            if not item.busy and item.ask.fits(ask) and item.span_s >= idle_s and lasts:
                return item
        return None

    async def _make(self, item: Standing) -> "WarmBerth | None":
        try:
            most = await self._office.price(item.ask)
            worst_usd = most / 3600 * self._office.worst_s(self._lifetime_s)
            if not await item.purse.reserve(item.name, worst_usd, most / 3600):
                await self._remove(item)
                return None
            item.reserved = True
            await self._office.rent(item.name, item.ask, most, self._lifetime_s, item.span_s, item.made)
        except BaseException as error:
            await self.retire(item)
            if isinstance(error, SandboxError):
                error.usd = 0.0  # the purse has paid it
            raise
        return WarmBerth(self, item)

    async def retire(self, item: Standing) -> None:
        """End it, and tell the purse once what it cost, even if a caller stops waiting for that."""
        if item.ending is None:
            item.ending = asyncio.create_task(self._retire(item))
        await asyncio.shield(item.ending)

    async def _retire(self, item: Standing) -> None:
        try:
            usd = await item.rented.end() if item.rented else 0.0
            if item.reserved:
                item.purse.settle(item.name, usd, seen=not (item.rented and item.rented.unseen))
        finally:
            await self._remove(item)

    async def _remove(self, item: Standing) -> None:
        async with self._changed:
            self._standing.remove(item)
            self._changed.notify_all()

    async def give_back(self, item: Standing) -> None:
        async with self._changed:
            item.busy = False
            self._changed.notify_all()

    async def close(self) -> None:
        await asyncio.gather(*(self.retire(item) for item in list(self._standing)))


class WarmBerth:
    """A trial on it costs nothing: the purse pays for the cluster."""

    unseen = ""

    def __init__(self, pool: Pool, item: Standing) -> None:
        self._pool = pool
        self._item = item

    @property
    def machine(self) -> Machine:
        if self._item.rented is None or self._item.rented.machine is None:
            raise RuntimeError("a berth is handed out once its machine is up")
        return self._item.rented.machine

    async def leave(self, *, clean: bool) -> float:
        try:
            if clean:
                await self.machine.wipe()
        except SandboxError:
            clean = False
        if clean:
            await self._pool.give_back(self._item)
        else:
            await self._pool.retire(self._item)
        return 0.0


class FreshBerth:
    """A machine for this one chamber, ended with it."""

    def __init__(self, rented: Rented) -> None:
        self._rented = rented

    @property
    def machine(self) -> Machine:
        if self._rented.machine is None:
            raise RuntimeError("a berth is handed out once its machine is up")
        return self._rented.machine

    @property
    def unseen(self) -> str:
        return self._rented.unseen

    async def leave(self, *, clean: bool) -> float:
        del clean  # it is ended either way
        return await self._rented.end()
