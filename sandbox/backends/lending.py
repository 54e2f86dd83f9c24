"""Which chamber has which GPU of a machine: each has its own, no matter which process opened it.

Within one backend they are counted here. Between owners a claim tells that all of them see: a chamber's claim is there
before it looks for others with the same GPU; one that sees another gives way, so two never start.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from sandbox.errors import NoSuchGpu, Unavailable
from sandbox.gpus import SeenGpu, is_kind
from sandbox.job import Gpu
from sandbox.live import LiveChamber

Look = Callable[[], Awaitable[Sequence[SeenGpu]]]
Make = Callable[[tuple[str, ...]], Awaitable[LiveChamber]]


class Taken(Unavailable):
    """Another owner's chamber has one of these GPUs."""

    def __init__(self, ids: Sequence[str]) -> None:
        super().__init__(f"the GPU {', '.join(ids)} is in use by another owner's chamber, or by one that does not end")
        self.ids = frozenset(ids)


def refuse_taken(chamber: str, ids: Sequence[str], claims: Mapping[str, Sequence[str]]) -> None:
    """Raises Taken when another chamber than this one claims one of its GPUs."""
    for other, theirs in claims.items():
        if other != chamber and (both := sorted(set(theirs) & set(ids))):
            raise Taken(both)


class Gpus:
    """The GPUs of one machine, as one backend hands them out."""

    def __init__(self, wait_s: float, poll_s: float = 1.0) -> None:
        self._wait_s = wait_s
        self._poll_s = poll_s
        self._known: Sequence[SeenGpu] | None = None
        self._looking = asyncio.Lock()
        self._lent: set[str] = set()
        self._freed = asyncio.Event()

    async def open(self, wanted: Gpu, look: Look, make: Make) -> LiveChamber:
        """A chamber that has its GPUs for itself. Waits as long as our own chambers need them.

        `look` tells all GPUs that there are, and is asked once; `make` gives its GPUs back when it fails. Raises
        NoSuchGpu when there are no such GPUs, Unavailable when other owners do not give them up in time.
        """
        everything = await self._all(look)
        fitting = [gpu.id for gpu in everything if gpu.id and is_kind(wanted.kind, gpu)]
        if len(fitting) < wanted.count:
            names = ", ".join(gpu.name for gpu in everything) or "none that a chamber sees"
            raise NoSuchGpu(f"gpu: wanted {wanted}, there is {names}")
        until = time.monotonic() + self._wait_s
        elsewhere: set[str] = set()
        while True:
            ids = await self._reserve([it for it in fitting if it not in elsewhere], wanted.count)
            try:
                return await make(ids)
            except Taken as taken:
                elsewhere |= taken.ids
                if len(fitting) - len(elsewhere) < wanted.count:
                    if time.monotonic() > until:
                        raise
                    elsewhere.clear()
                    await asyncio.sleep(self._poll_s)

    def give_back(self, ids: Sequence[str]) -> None:
        self._lent.difference_update(ids)
        self._freed.set()

    async def _all(self, look: Look) -> Sequence[SeenGpu]:
        async with self._looking:
            if self._known is None:
                self._known = await look()
            return self._known

    async def _reserve(self, ids: Sequence[str], count: int) -> tuple[str, ...]:
        while len(free := [it for it in ids if it not in self._lent]) < count:
            self._freed.clear()
            await self._freed.wait()
        self._lent.update(free[:count])
        return tuple(free[:count])
