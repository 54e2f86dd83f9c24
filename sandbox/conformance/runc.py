"""A runtime that we drive ourselves as a subject: orphaned by a process of our own. Nothing can cut it off."""

from collections.abc import Awaitable, Callable, Mapping

from sandbox.backend import Backend
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import group_of, owners
from sandbox.backends.runc.warden import sweep
from sandbox.config import RuncConfig
from sandbox.conformance.local_owner import killed_owner
from sandbox.environment import DOCKER


class RuncOrphan:
    def __init__(self, config: RuncConfig, owner: str) -> None:
        self._config = config
        self._owner = owner
        self._cgroups = Cgroups.of_this_machine()

    async def alive(self) -> bool:
        return bool(self._cgroups.processes(group_of(self._owner)))

    async def exists(self) -> bool:
        return self._cgroups.exists(group_of(self._owner)) or self._owner in owners(self._config.folder)


class RuncSubject:
    def __init__(self, config: RuncConfig) -> None:
        self._config = config
        self.name = str(config.runtime)
        self.lacks: Mapping[str, str] = {
            "provider_gone": "nothing stands between us and the kernel that could go away",
            **({} if config.runtime == "runsc" else {"needs_refused_at_open": "every limit is held by somebody here"}),
        }
        self._left: list[str] = []

    async def connect(self) -> Backend:
        return await self._config.connect()

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        raise NotImplementedError(self.lacks["provider_gone"])

    async def orphan(self) -> RuncOrphan:
        name = await killed_owner(self._config, DOCKER)
        self._left.append(name)
        return RuncOrphan(self._config, name)

    async def close(self) -> None:
        while self._left:
            sweep(self._left.pop(), str(self._config.folder))
