"""The whole suite: every row, each inside an outer limit. Whatever goes wrong in a row is a row that is not good."""

import asyncio
import time
from collections.abc import Callable, Collection

from sandbox.attacks import artifacts, capture, channels, controls, exhaustion, gpu, host_escape, neighbours, network
from sandbox.attacks.attack import Arena, Attack, Finding, NotHere, Result, Target, perform, registered
from sandbox.errors import Refused
from sandbox.posture import FULL, Posture

GROUPS = (artifacts, capture, channels, controls, exhaustion, gpu, host_escape, neighbours, network)
ROW_LIMIT_S = 90.0

OnResult = Callable[[Result], None]


async def run_suite(
    target: Target, only: Collection[str] = (), on_result: OnResult | None = None, posture: Posture = FULL
) -> list[Result]:
    """Run the rows with these ids, or all. Raises Refused for an id that does not exist, Unavailable without engine."""
    rows = selected(only)
    arena = await target.open(posture)
    results = []
    try:
        for row in rows:
            result = await perform_bounded(row, arena)
            results.append(result)
            if on_result:
                on_result(result)
    finally:
        await arena.backend.close()
    return results


def selected(only: Collection[str]) -> list[Attack]:
    known = {item.id for item in registered()}
    if unknown := sorted(set(only) - known):
        raise Refused(f"there is no attack {unknown[0]}; known are {', '.join(sorted(known))}")
    return [item for item in registered() if not only or item.id in only]


async def perform_bounded(item: Attack, arena: Arena, limit: float = ROW_LIMIT_S) -> Result:
    """A result in any case: an attack that raises or hangs has proved nothing, and says so."""
    started = time.perf_counter()
    limiter = asyncio.timeout(limit)
    here = True
    try:
        async with limiter:
            return await perform(item, arena)
    except NotHere as error:
        here, text = False, str(error)
    except Exception as error:  # noqa: BLE001  shown as the row's evidence, never hidden
        text = f"{type(error).__name__}: {error}"
        if limiter.expired():
            text = f"over the suite's limit of {limit:g} s"
    finding = Finding(ran=False, blocked=False, ending="none", evidence=text)
    return Result(item, arena.runtime, finding, (time.perf_counter() - started) * 1000, here)
