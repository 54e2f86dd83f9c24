"""Ends an owner's sandboxes when the owner is gone.

Modal keeps a command's stdin open when its client is gone, so nothing inside notices. An owner that was killed may
have had a create under way, which Modal finishes all the same: so the sweep is repeated until none can come any more.
"""

import asyncio
import time

from sandbox.backends.modal.engine import ModalEngine
from sandbox.backends.modal.marks import end_owned
from sandbox.errors import Refused, SandboxError

IN_FLIGHT_S = 60.0
PATIENCE_S = 300.0
PAUSE_S = 2.0


async def end_all(owner: str, app: str, environment: str | None, watch_s: float = 0.0) -> None:
    """Sweep once, and again for so long as a create may be under way; a provider that is away is waited for."""
    begun = time.monotonic()
    swept = False
    while not swept or time.monotonic() - begun < watch_s:
        try:
            engine = await ModalEngine.connect(app, environment)
            try:
                while True:
                    await end_owned(engine, owner)
                    swept = True
                    if time.monotonic() - begun >= watch_s:
                        return
                    await asyncio.sleep(PAUSE_S)
            finally:
                await engine.close()
        except Refused:
            raise
        except SandboxError:
            if time.monotonic() - begun > PATIENCE_S:
                raise
            swept = False
            await asyncio.sleep(PAUSE_S)


def sweep(owner: str, app: str, environment: str) -> None:
    asyncio.run(end_all(owner, app, environment or None, IN_FLIGHT_S))
