"""The owner's side of its warden: posted at the start, replaced when it died, dismissed in the end."""

import asyncio
import contextlib
import sys
from collections.abc import Iterable

from sandbox.backends import watch
from sandbox.environment import child_environment
from sandbox.errors import Unavailable
from sandbox.logger import logger

READY_S = 60.0
DISMISS_S = 5.0


class Guard:
    """A process beside us that ends our chambers when we are gone, even if a candidate outwits its own PID 1."""

    def __init__(self, owner: str, warden: str, *words: str, needs: Iterable[str] = ()) -> None:
        """`warden` is the module that sweeps; `words` are its arguments after the owner, and never a secret; `needs`
        are the variables by which it reaches the provider.
        """
        self._needs = tuple(needs)
        # Without the script's own folder in front of its path: packages there are named like those of providers.
        self._command = (sys.executable, "-P", watch.__file__, warden, owner, *words)
        self._owner = owner
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._heard = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def post(self) -> None:
        self._heard = False
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=child_environment(self._needs),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    async def ready(self) -> None:
        """Nothing is started unguarded: raises Unavailable when no warden can be had."""
        async with self._turn:
            if self._process and self._process.returncode is not None:
                logger(owner=self._owner).warning("warden.died", code=self._process.returncode)
                await self.post()
            if not self._heard:
                await self._hear()

    async def _hear(self) -> None:
        word = b""
        if self._process and self._process.stdout:
            with contextlib.suppress(TimeoutError):
                word = await asyncio.wait_for(self._process.stdout.readline(), READY_S)
        if word != b"ready\n":
            raise Unavailable(
                "the warden did not start, and nothing is started unguarded; check free memory and try again"
            )
        self._heard = True

    async def dismiss(self, *, all_ended: bool) -> None:
        """It just goes if all has ended; else it sweeps, and stays behind while the provider does not answer."""
        if self._process and self._process.stdin:
            if all_ended and self._process.returncode is None:
                self._process.stdin.write(watch.DONE)
            self._process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), DISMISS_S)
