"""Our grip on one sandbox."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from sandbox.backends.modal.link import ModalLink
from sandbox.errors import Lost, SandboxError, TakenAway, Unavailable
from sandbox.live import Death

# At its own limit, by the kernel or by Modal's memory manager: the candidate's doing.
MEMORY = frozenset({"KERNEL_OOM_KILL", "MEMORY_THRASHING_EVICTION"})
# Modal's words for its own doing: the sandbox never began, or its worker was short of memory. An internal failure is
# not among them, since a candidate may know how to cause one.
TAKEN_AWAY = frozenset({"INIT_FAILURE", "MEMORY_MANAGER_EVICTION"})
DYING_S = 5.0
LOOK_S = 0.2


class EndedWord(Protocol):
    @property
    def status(self) -> str: ...


class Watched(Protocol):
    async def ended(self) -> EndedWord | None: ...


class ModalHold:
    """`end` is the backend's: it remembers what could not be ended, and tries again.

    `billed_since` is when the sandbox was asked for: Modal charges from there, ready or not. Who takes a sandbox that
    was made ahead sets it to that moment; the time before is paid by the purse.
    """

    def __init__(
        self,
        name: str,
        sandbox: Watched,
        link: ModalLink,
        usd_per_second: float,
        billed_since: float | None,
        out_of_memory: Callable[[], Awaitable[bool]],
        end: Callable[[str], Awaitable[None]],
    ) -> None:
        self.name = name
        self.link = link
        self.usd_per_second = usd_per_second
        self.billed_since = billed_since
        self._sandbox = sandbox
        self._out_of_memory = out_of_memory
        self._end = end

    async def cause_of_death(self, timeout: float) -> Death:
        """The sandbox outlives its command: while it runs, the kernel's own counter is read beside the candidate.

        A candidate can reach neither that counter nor the sandbox's first process, which are root's.
        """
        if death := self._death_of(await self._sandbox.ended()):
            return death
        try:
            return Death.MEMORY if await self._out_of_memory() else Death.ITS_OWN_DOING
        except SandboxError as error:
            # A sandbox that is about to end takes no questions; what Modal says of its end decides.
            return await self._death_within(min(timeout, DYING_S), error)

    async def _death_within(self, seconds: float, error: SandboxError) -> Death:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if death := self._death_of(await self._sandbox.ended()):
                return death
            await asyncio.sleep(LOOK_S)
        raise Unavailable(f"{self.name} runs, and its machine does not answer ({error})") from error

    def _death_of(self, ended: EndedWord | None) -> Death | None:
        if ended is None:
            return None
        if ended.status in MEMORY:
            return Death.MEMORY
        if ended.status in TAKEN_AWAY:
            raise TakenAway(f"{self.name} was taken away by Modal ({ended.status})")
        raise Lost(f"{self.name} has ended, and nobody knows whose fault it was ({ended.status or 'no reason given'})")

    async def answers(self) -> None:
        await self.cause_of_death(DYING_S)

    async def processor_seconds(self) -> float | None:
        """Modal does not tell."""
        return None

    async def destroy(self) -> None:
        await self._end(self.name)
        self.link.close()

    def release(self) -> None:
        self.link.close()
