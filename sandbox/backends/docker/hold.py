"""Our grip on one container."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from sandbox.answers import Answer, flag, text
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.link import DockerLink
from sandbox.errors import Lost, SandboxError, TakenAway, Unavailable
from sandbox.live import Death

# What the kernel ended for its memory is dead at once; the engine may hear of it after the death.
LOOKS, LOOK_S = 20, 0.1
KILLED = "137"


class DockerHold:
    """`remove` is the backend's: it remembers what could not be removed, and tries again. `unprotected` tells whether
    our lease has lapsed since: then the reaper was right to end it.
    """

    billed_since: float | None = None

    def __init__(
        self,
        engine: Engine,
        container: str,
        name: str,
        link: DockerLink,
        usd_per_second: float,
        remove: Callable[[str], Awaitable[None]],
        unprotected: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._container = container
        self._remove = remove
        self._unprotected = unprotected
        self.name = name
        self.link = link
        self.usd_per_second = usd_per_second

    async def cause_of_death(self, timeout: float) -> Death:
        """Only the engine can tell a crash from somebody else's kill, or from its own restart."""
        try:
            return await self._cause_of_death(timeout)
        except Lost as error:
            if self._unprotected():
                raise TakenAway(f"{error}; our lease had lapsed, and another owner reaped it") from error
            raise

    async def _cause_of_death(self, timeout: float) -> Death:
        with contextlib.suppress(Unavailable):  # one that does not end in time is no evidence; inspect decides
            await self._engine.wait(self._container, timeout)
        record = await self._engine.inspect(self._container)
        if flag(record, "State", "OOMKilled"):
            return Death.MEMORY
        if flag(record, "State", "Running"):
            return Death.ITS_OWN_DOING
        events = await self._events(record)
        if "oom" in events:
            return Death.MEMORY
        if "kill" in events:
            raise Lost(f"{self.name} was killed by somebody else")
        if "die" not in events:
            raise Lost(f"the engine did not see {self.name} end; was it restarted?")
        return Death.ITS_OWN_DOING

    async def _events(self, record: Answer) -> list[str]:
        """What the engine noted; where something was killed and nobody is named yet, it is asked a few times more."""
        for _ in range(LOOKS - 1 if text(record, "State", "ExitCode") == KILLED else 0):
            events = await self._engine.events(self._container)
            if {"oom", "kill"} & set(events):
                return events
            await asyncio.sleep(LOOK_S)
        return await self._engine.events(self._container)

    async def answers(self) -> None:
        """The engine is the machine: it answers when it is told to kill."""

    async def processor_seconds(self) -> float | None:
        try:
            return await self._engine.cpu_seconds(self._container)
        except SandboxError:
            return None

    async def destroy(self) -> None:
        await self._remove(self.name)

    def release(self) -> None:
        self.link.close()
