"""Work whose cost a change, a model, an agent or a candidate decides: never on the event loop.

It has threads of its own, and few of them: a flood of it waits for itself, and engines, judges and databases keep
theirs. What is handed over must be bounded by its own budget, because a thread cannot be ended.
"""

import asyncio
import functools
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 2  # of each lane: they share one interpreter with the loop
# How long one thread may keep the interpreter from the others that want it; the loop is one of them.
_TURN_S = 0.001


async def offload(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Done when it returns or raises, also when the task is cancelled: nothing writes behind a caller's back."""
    return await _in_thread(_lanes()[0], functools.partial(work, *args, **kwargs))


async def offload_disk(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for what waits for the disk, so that it keeps nobody from computing."""
    return await _in_thread(_lanes()[1], functools.partial(work, *args, **kwargs))


async def _in_thread(lane: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await finished(lane.submit(work))


async def finished(job: Future[T]) -> T:
    """The same for what another thread was given."""
    future = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError as error:
        cancelled = error
    while not job.cancel() and not future.done():  # what had not begun never begins
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if future.done() and not future.cancelled():
        future.exception()  # nobody waits for it any more, and asyncio would print it
    raise cancelled


@functools.cache
def _lanes() -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
    sys.setswitchinterval(min(_TURN_S, sys.getswitchinterval()))
    return (
        ThreadPoolExecutor(_THREADS, thread_name_prefix="work"),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="disk"),
    )
