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
    """Remove every chamber and lease of an owner. Side by side: an engine may say nothing for minutes to each that it
    cannot end, and that one must not keep us from the others.
    """
    engine = Engine(host)
    try:
        chambers = [needed(it, "Id") for it in await engine.containers(f"{OWNER_LABEL}={owner}")]
        outcomes: list[object] = [*await asyncio.gather(*map(engine.remove, chambers), return_exceptions=True)]
        leases = [needed(it, "Name") for it in await engine.volumes(f"{OWNER_LABEL}={owner}")]
        outcomes += await asyncio.gather(*map(engine.remove_volume, leases), return_exceptions=True)
    finally:
        engine.close()
    failures = [it for it in outcomes if isinstance(it, BaseException)]
    if failures:  # first of all one that is worth another try
        raise next((it for it in failures if isinstance(it, Unavailable)), failures[0])


def sweep(owner: str, host: str) -> None:
    asyncio.run(end_all(owner, host))
