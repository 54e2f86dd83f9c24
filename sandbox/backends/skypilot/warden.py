"""Ends an owner's clusters when the owner is gone.

It looks more than once: a launch that was on its way when the owner died is seen only when SkyPilot has taken it up.
"""

import asyncio
import time

from sandbox.backends.skypilot.end import end, found
from sandbox.backends.skypilot.names import mark_of
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.errors import SandboxError

PATIENCE_S = 1800.0
PAUSE_S = 5.0
CLEAN_LOOKS = 3


async def end_all(
    owner: str, provisioner: Provisioner, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S
) -> int:
    """End every cluster of an owner, until nothing was found several times in a row; how many were ended."""
    until = time.monotonic() + patience_s
    clean = ended = 0
    while clean < CLEAN_LOOKS and time.monotonic() < until:
        try:
            names = [name for name in await found(provisioner) if getattr(mark_of(name), "owner", "") == owner]
            ended += sum([await _is_ended(provisioner, name, pause_s) for name in names])
            clean = 0 if names else clean + 1
        except SandboxError:
            clean = 0
        await asyncio.sleep(pause_s)
    return ended


async def _is_ended(provisioner: Provisioner, name: str, pause_s: float) -> bool:
    """One that cannot be ended now is found again in the next round; it must not keep us from the others."""
    try:
        await end(provisioner, name, pause_s)
    except SandboxError:
        return False
    return True


def sweep(owner: str) -> None:
    from sandbox.backends.skypilot.sdk import SkyPilot  # whose package is another extra's

    asyncio.run(end_all(owner, SkyPilot()))
