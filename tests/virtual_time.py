"""A test's hours in moments: an event loop that does not wait when nothing but a clock is waited for.

Its time, and so `time.monotonic`, is the real one and all that was skipped. While a thread of the loop's works, nothing
is skipped: what it brings would come too late otherwise.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
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


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: "VirtualTime") -> None:
        super().__init__(_Skipping(clock))
        self._clock = clock

    def run_in_executor(  # type: ignore[override]  # the same, counted
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        self._clock.threads += 1
        working = super().run_in_executor(executor, func, *args)
        working.add_done_callback(self._clock.thread_ended)
        return working


class VirtualTime:
    """`run` runs a test's coroutine in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.skipped = 0.0
        self.threads = 0
        monotonic, since_1970 = time.monotonic, time.time
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + self.skipped)
        monkeypatch.setattr(time, "time", lambda: since_1970() + self.skipped)

    def thread_ended(self, _: "asyncio.Future[Any]") -> None:
        self.threads -= 1

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=lambda: _Loop(self)) as runner:
            return runner.run(work)
