"""Sandboxes made ahead of need. They cost from the first second, so a purse pays for them until a trial takes them."""

import asyncio
from collections.abc import Callable

from sandbox.backends.modal.hold import ModalHold
from sandbox.live import LiveChamber
from sandbox.price import billed_clock


class Standing:
    """A chamber that is ready. One made ahead waits for `idle_s` at most, and tells `taken` when it is taken."""

    def __init__(
        self,
        chamber: LiveChamber,
        hold: ModalHold,
        idle_s: float | None = None,
        taken: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._chamber = chamber
        self._hold = hold
        self._taken = taken
        self._is_ending = False
        self._cap = asyncio.create_task(self._end_after(idle_s)) if idle_s is not None else None

    @property
    def broken(self) -> bool:
        """True from the order to end it on: its end may take the provider a while."""
        return self._is_ending or self._chamber.broken

    async def kill(self) -> None:
        """What it has cost is told when its end is confirmed."""
        self._is_ending = True
        if self._cap:
            self._cap.cancel()
        await self._chamber.kill()

    def take(self) -> LiveChamber:
        """From here on its time is the trial's."""
        if self._cap:
            self._cap.cancel()
            self._taken(self._hold.name)
            self._hold.billed_since = billed_clock()
        return self._chamber

    async def _end_after(self, idle_s: float) -> None:
        await asyncio.sleep(idle_s)
        self._is_ending = True
        await self._chamber.kill()
