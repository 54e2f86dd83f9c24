"""Ending a cluster for good: what is under way is cancelled first, because it could bring the cluster back."""

import asyncio

from sandbox.backends.skypilot.names import mark_of
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.errors import SandboxError, Unavailable
from sandbox.logger import logger
from sandbox.tenancy import Tenancy

ROUNDS = 5
PAUSE_S = 1.0


async def end(provisioner: Provisioner, name: str, pause_s: float = PAUSE_S) -> None:
    """Cancelled, downed, and looked at again until neither a request nor a cluster of that name is left.

    Raises Unavailable when it cannot be confirmed, whatever SkyPilot said: nobody else may be to blame for that.
    """
    problem: SandboxError | None = None
    for round_ in range(ROUNDS):
        try:
            if await _ended(provisioner, name):
                return
        except SandboxError as error:
            problem = error
        await asyncio.sleep(pause_s * (1 + round_))
    raise Unavailable(f"the cluster {name} could not be ended: {problem or 'it is still there'}; it is tried again")


async def _ended(provisioner: Provisioner, name: str) -> bool:
    under_way = [id_ for id_, cluster in (await provisioner.requests()).items() if cluster == name]
    if under_way:
        await provisioner.cancel_requests(under_way)
    there = name in await provisioner.clusters()
    if there:
        await provisioner.down(name)
    return not under_way and not there


async def found(provisioner: Provisioner) -> list[str]:
    """Names of ours, of clusters and of those that are about to be. Requests first: a launch becomes a cluster."""
    coming = list((await provisioner.requests()).values())
    return sorted({name for name in [*coming, *await provisioner.clusters()] if mark_of(name)})


async def reap(provisioner: Provisioner, tenancy: Tenancy, pause_s: float = PAUSE_S) -> tuple[list[str], list[str]]:
    """End what belongs to owners that are gone; never a living one's. What was ended, and what is left for the next."""
    marked = [(name, mark) for name in await found(provisioner) if (mark := mark_of(name))]
    over, left = tenancy.sorted_out(marked)
    ended = []
    for name in over:
        try:
            await end(provisioner, name, pause_s)
        except Unavailable as error:
            logger(cluster=name).warning("cluster.not_ended", reason=str(error))
            left.append(name)
        else:
            ended.append(name)
    return ended, left
