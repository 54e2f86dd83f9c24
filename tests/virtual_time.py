"""A test's hours in moments: an event loop that does not wait when nothing but a clock is waited for.

Its time, and so `time.monotonic`, is the real one and all that was skipped. While a thread of a pool works, nothing is
skipped: what it brings would come too late otherwise.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

_LOOK_S = 0.05
T = TypeVar("T")


class _Skipping(selectors.DefaultSelector):
    def __init__(self, clock: "VirtualTime") -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if self._clock.threads:
            return super().select(min(timeout, _LOOK_S))
        found = super().select(0)
        if not found:
            self._clock.skipped += timeout
        return found


class VirtualTime:
    """`run` runs a test's coroutine in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.skipped = 0.0
        self.threads = 0
        self._monkeypatch = monkeypatch
        monotonic, since_1970 = time.monotonic, time.time
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + self.skipped)
        monkeypatch.setattr(time, "time", lambda: since_1970() + self.skipped)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Skipping(self))) as runner:
            self._count_threads(runner.get_loop())
            return runner.run(work)

    def _count_threads(self, loop: asyncio.AbstractEventLoop) -> None:
        submit = ThreadPoolExecutor.submit

        def counted(pool: ThreadPoolExecutor, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
            self.threads += 1
            job = submit(pool, work, *args, **kwargs)
            # In the next turn: the one that waits for it has asked to be told by then, and is told before us.
            loop.call_soon(job.add_done_callback, lambda _: loop.call_soon_threadsafe(self._thread_ended))
            return job

        self._monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)

    def _thread_ended(self) -> None:
        self.threads -= 1
