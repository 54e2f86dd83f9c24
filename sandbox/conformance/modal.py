"""An account at Modal as a subject: the real service, or whatever MODAL_SERVER_URL names."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from sandbox.backend import Backend
from sandbox.backends.modal.backend import ModalBackend
from sandbox.backends.modal.marks import OWNER
from sandbox.backends.modal.warden import end_all
from sandbox.config import ModalConfig
from sandbox.environment import MODAL, child_environment

STARTING_S = 120.0

LACKS = {
    "orphan_ends_itself": "Modal keeps a command's stdin open when its client is gone, so nothing inside notices; "
    "the warden ends the sandbox, reap does, and its lifetime does in any case",
}
SHORT_SILENCE = 2.0
NOT_CUT = {"provider_gone": "nobody can cut the real service off from here; our tests cut an emulator off"}

Cut = Callable[[], Awaitable[None]]


class ModalOrphan:
    """Seen through the provider's own list of what runs."""

    def __init__(self, config: ModalConfig, owner: str) -> None:
        self._config = config
        self._owner = owner

    async def alive(self) -> bool:
        from sandbox.backends.modal.engine import ModalEngine

        engine = await ModalEngine.connect(self._config.app, self._config.environment)
        try:
            return bool(await engine.running({OWNER: self._owner}))
        finally:
            await engine.close()

    async def exists(self) -> bool:
        return await self.alive()


class ModalSubject:
    """`cut` cuts the provider off, where somebody can; else that row is among what the subject lacks."""

    name = "modal"

    def __init__(self, config: ModalConfig, cut: Cut | None = None) -> None:
        self._config = config
        self._cut = cut
        self._left: list[str] = []
        self.lacks: Mapping[str, str] = LACKS if cut else LACKS | NOT_CUT

    async def connect(self) -> Backend:
        return await self._config.connect()

    async def connect_cuttable(self) -> tuple[Backend, Cut]:
        deadlines = replace(self._config.deadlines, silence=SHORT_SILENCE)  # it never comes back
        backend = await ModalBackend.connect(self._config.model_copy(update={"deadlines": deadlines}))
        self._left.append(backend.owner)

        async def cut() -> None:
            if self._cut:
                await self._cut()
            # It would try for minutes to reach a service that never comes back; `close` sweeps in its place.
            if backend.warden_pid:
                os.kill(backend.warden_pid, signal.SIGKILL)

        return backend, cut

    async def orphan(self) -> ModalOrphan:
        """An owner in a process of its own opens a chamber; its warden is ended first, then the owner is killed."""
        owner = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sandbox.conformance.modal_owner",
            self._config.model_dump_json(),
            env=child_environment(MODAL),
            stdout=asyncio.subprocess.PIPE,
        )
        if owner.stdout is None:
            raise RuntimeError("the owner has no stdout")
        name, warden = (await asyncio.wait_for(owner.stdout.readline(), STARTING_S)).decode().split()
        self._left.append(name)
        os.kill(int(warden), signal.SIGKILL)
        owner.kill()
        await owner.wait()
        return ModalOrphan(self._config, name)

    async def close(self) -> None:
        while self._left:
            await end_all(self._left.pop(), self._config.app, self._config.environment)
