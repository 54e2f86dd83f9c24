"""Who is alive, kept where the containers are: an owner's lease is a volume whose label says until when it holds.

Labels never change, so renewing means a new volume; the one before stays until the next renewal, and a reader finds
at least one at any moment. An owner that let its lease lapse, because the engine was away or the machine slept, takes a
new one before it opens anything more. Of what it opened before, everything may be gone: that was nobody's doing inside.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sandbox.answers import Answer, items, needed, text
from sandbox.backends.docker.engine import Engine
from sandbox.errors import Refused, SandboxError
from sandbox.logger import logger

OWNER_LABEL = "blastdoor.owner"
EXPIRY_LABEL = "blastdoor.expires"


class Lease:
    """An owner's claim on its chambers, renewed at a third of its length, and tried again soon where that failed.

    `in_doubt`: one more volume may be there. `lapses` counts how often it ended before it was renewed.
    """

    def __init__(self, engine: Engine, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.owner = uuid.uuid4().hex[:16]
        self.engine = engine
        self._seconds = seconds
        self.clock = clock
        self._expires = 0.0
        self._volumes: list[str] = []
        self._beat: asyncio.Task[None] | None = None
        self._released = asyncio.Event()
        self._turn = asyncio.Lock()
        self.in_doubt = False
        self.lapses = 0

    async def acquire(self, after_beat: Callable[[], Awaitable[None]]) -> None:
        """Hold the lease, and renew it until released; `after_beat` is called whenever that worked."""
        await self.renew()
        self._beat = asyncio.create_task(self._renew_for_ever(after_beat))

    @property
    def holds(self) -> bool:
        return self.clock() < self._expires

    async def hold(self) -> None:
        """Before something is opened: one that lapsed is taken again. Raises Unavailable while the engine is away."""
        if not self.holds:
            async with self._turn:
                if not self.holds:  # another opening may have taken it meanwhile
                    await self._renew()

    async def renew(self) -> None:
        async with self._turn:
            await self._renew()

    async def _renew(self) -> None:
        if self._released.is_set():
            raise Refused(f"owner {self.owner} has released its lease; connect again")
        expires = self.clock() + self._seconds
        name = f"blastdoor-lease-{self.owner}-{expires:.3f}"
        try:
            await self.engine.create_volume(name, {OWNER_LABEL: self.owner, EXPIRY_LABEL: f"{expires:.3f}"})
        except BaseException:
            self.in_doubt = True  # an engine that is slow may make it after all, and then nobody here knows of it
            raise
        self._volumes.append(name)
        # Asked only now: an engine may take its time, and one that looked meanwhile saw no lease that held.
        if len(self._volumes) > 1 and not self.holds:
            self.lapses += 1
            logger(owner=self.owner).warning("lease.lapsed")
        self._expires = expires
        while len(self._volumes) > 2:
            await self.engine.remove_volume(self._volumes.pop(0))

    async def release(self) -> None:
        """A renewal that is under way is waited for: its volume would come when nobody removes it any more."""
        self._released.set()
        if self._beat:
            await self._beat
        self._expires = 0.0
        while self._volumes:
            await self.engine.remove_volume(self._volumes.pop())

    async def _renew_for_ever(self, after_beat: Callable[[], Awaitable[None]]) -> None:
        """What comes after a beat is not waited for: an engine may be well, and one of its containers not."""
        following: asyncio.Task[None] | None = None
        wait_s = self._seconds / 3
        try:
            while not await self._released_within(wait_s):
                try:
                    await self.renew()
                except SandboxError as error:
                    logger(owner=self.owner).warning("lease.not_renewed", reason=str(error))
                    # It may have taken all that its client waits for: a longer wait would leave a third try no time.
                    wait_s = self._seconds / 24
                    continue
                wait_s = self._seconds / 3
                if following is None or following.done():
                    following = asyncio.create_task(self._followed(after_beat))
        finally:
            if following:
                following.cancel()
                await asyncio.wait([following])

    async def _followed(self, after_beat: Callable[[], Awaitable[None]]) -> None:
        try:
            await after_beat()
        except SandboxError as error:
            logger(owner=self.owner).warning("lease.not_followed", reason=str(error))

    async def _released_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._released.wait(), seconds)
        return self._released.is_set()


async def reap(engine: Engine, clock: Callable[[], float] = time.time) -> tuple[list[str], list[str]]:
    """Remove chambers and leases of owners whose lease ran out, never a live one's; what was removed, and what could
    not be.
    """
    # Containers first: the maker of one of them held a lease before.
    containers = await engine.containers(OWNER_LABEL)
    ended: list[str] = []
    left: list[str] = []
    volumes = await engine.volumes(EXPIRY_LABEL)
    live = {text(it, "Labels", OWNER_LABEL) for it in volumes if _expiry(it) > clock()}

    async def remove(container: Answer) -> None:
        id_ = needed(container, "Id")
        # An engine that is about to remove it has taken its name already.
        name = str((items(container, "Names") or [id_])[0]).lstrip("/")
        try:
            if await engine.remove(id_):
                ended.append(name)
        except SandboxError as error:
            logger(chamber=name).warning("chamber.not_reaped", reason=str(error))
            left.append(name)

    # Side by side: an engine may say nothing for minutes to each that it cannot end.
    owned = [(text(it, "Labels", OWNER_LABEL), it) for it in containers]
    await asyncio.gather(*(remove(it) for owner, it in owned if owner and owner not in live))
    for name in [needed(it, "Name") for it in volumes if _expiry(it) <= clock()]:
        try:
            await engine.remove_volume(name)
            ended.append(name)
        except SandboxError as error:
            logger(lease=name).warning("lease.not_reaped", reason=str(error))
            left.append(name)
    return ended, left


def _expiry(volume: Answer) -> float:
    try:
        return float(text(volume, "Labels", EXPIRY_LABEL))
    except ValueError:
        return 0.0
