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
U = TypeVar("U")

_THREADS = 2  # of each lane: they share one interpreter with the loop
# How long one thread may keep the interpreter from the others that want it; the loop is one of them.
_TURN_S = 0.001


async def offload(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Done when it returns or raises, also when the task is cancelled: nothing writes behind a caller's back."""
    return await _finished(begin(_lanes()[0], functools.partial(work, *args, **kwargs)))


async def offload_disk(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for what waits for the disk, so that it keeps nobody from computing."""
    return await _finished(begin(_lanes()[1], functools.partial(work, *args, **kwargs)))


async def offload_and_hand_on(work: Callable[P, tuple[T, Future[U]]], *args: P.args, **kwargs: P.kwargs) -> tuple[T, U]:
    """The same for work that begins more in a thread of others: done, in one go, when that is done, too."""
    return await _finished(_HandedOn(begin(_lanes()[0], functools.partial(work, *args, **kwargs))))


def begin(lane: ThreadPoolExecutor, work: Callable[[], T]) -> Future[T]:
    return lane.submit(work)


async def _finished(job: Future[T]) -> T:
    loop = asyncio.get_running_loop()
    cancelled: asyncio.CancelledError | None = None
    while not job.done():
        waiter: asyncio.Future[None] = loop.create_future()
        job.add_done_callback(functools.partial(_wake, loop, waiter))
        try:
            await waiter
        except asyncio.CancelledError as error:
            cancelled = error
            job.cancel()  # what had not begun never begins
    if cancelled:
        raise cancelled
    return job.result()


def _wake(loop: asyncio.AbstractEventLoop, waiter: "asyncio.Future[None]", _: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(_end, waiter)


def _end(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class _HandedOn(Future[tuple[T, U]]):
    """What a job gave back, and what came of the future in it. Taken back only while the job has not begun."""

    def __init__(self, job: Future[tuple[T, Future[U]]]) -> None:
        super().__init__()
        self._job = job
        job.add_done_callback(self._go_on)

    def cancel(self) -> bool:
        return self._job.cancel()

    def _go_on(self, job: Future[tuple[T, Future[U]]]) -> None:
        if job.cancelled():
            super().cancel()
        elif error := job.exception():
            self.set_exception(error)
        else:
            job.result()[1].add_done_callback(self._end)

    def _end(self, last: Future[U]) -> None:
        if error := last.exception():
            self.set_exception(error)
        else:
            self.set_result((self._job.result()[0], last.result()))


@functools.cache
def _lanes() -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
    sys.setswitchinterval(min(_TURN_S, sys.getswitchinterval()))
    return (
        ThreadPoolExecutor(_THREADS, thread_name_prefix="work"),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="disk"),
    )
