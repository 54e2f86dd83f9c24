"""A clock of ours around every call of a package that has its own idea of patience."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from sandbox.errors import Unavailable

T = TypeVar("T")


async def within(doing: str, work: Awaitable[T], within_s: float) -> T:
    """Waits for no clean-up of the package's own: cancelling may hang as well as what is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=max(within_s, 0.0))
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
    if not task.done():
        raise Unavailable(f"{doing}: Modal did not answer within {within_s:.0f} s")
    if task.cancelled():
        raise Unavailable(f"{doing}: the connection to Modal was closed")
    return task.result()


def _forget(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()
