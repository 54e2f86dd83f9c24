"""Our grip on one chamber."""

from collections.abc import Awaitable, Callable

from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.link import RuncLink
from sandbox.errors import Lost
from sandbox.live import Death


class RuncHold:
    """`end` is the backend's: it remembers what could not be ended, and tries again."""

    billed_since: float | None = None

    def __init__(
        self,
        name: str,
        group: str,
        link: RuncLink,
        cgroups: Cgroups,
        usd_per_second: float,
        end: Callable[[], Awaitable[None]],
    ) -> None:
        self._group = group
        self._cgroups = cgroups
        self._end = end
        self.name = name
        self.link = link
        self.usd_per_second = usd_per_second

    async def cause_of_death(self, timeout: float) -> Death:
        """The kernel counts what it killed for memory before anybody can see the death."""
        del timeout  # nobody has to be waited for
        try:
            return Death.MEMORY if self._cgroups.oom_kills(self._group) else Death.ITS_OWN_DOING
        except OSError as error:
            raise Lost(f"{self.name} was ended by somebody else: its group is gone") from error

    async def answers(self) -> None:
        """The kernel is the machine: it answers when it is told to kill."""

    async def processor_seconds(self) -> float | None:
        try:
            return self._cgroups.cpu_seconds(self._group)
        except OSError:
            return None

    async def destroy(self) -> None:
        await self._end()

    def release(self) -> None:
        self.link.close()
