"""Ends an owner's chambers when the owner is gone.

PID 1 of a chamber ends itself when its stdin closes, but a hostile candidate can keep that pipe open from inside.
"""

import asyncio

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from sandbox.answers import needed
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.errors import Unavailable

PATIENCE_S = 120


@retry(
    retry=retry_if_exception_type(Unavailable),
    stop=stop_after_delay(PATIENCE_S),
    wait=wait_fixed(1),
    reraise=True,
)
async def end_all(owner: str, host: str) -> None:
    """Remove every chamber and lease of an owner."""
    engine = Engine(host)
    try:
        for container in await engine.containers(f"{OWNER_LABEL}={owner}"):
            await engine.remove(needed(container, "Id"))
        for volume in await engine.volumes(f"{OWNER_LABEL}={owner}"):
            await engine.remove_volume(needed(volume, "Name"))
    finally:
        engine.close()


def sweep(owner: str, host: str) -> None:
    asyncio.run(end_all(owner, host))
