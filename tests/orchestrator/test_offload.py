"""Work off the loop: it keeps nobody waiting but its caller, and is over when its caller goes on."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from orchestrator.offload import offload, offload_and_hand_on, offload_disk


async def test_the_loop_goes_on() -> None:
    """While a thread works, the loop turns; the result and what is raised come back."""
    begun, go = threading.Event(), threading.Event()

    def work(value: int) -> int:
        begun.set()
        assert go.wait(60)
        if value < 0:
            raise ValueError(value)
        return value + 1

    task = asyncio.create_task(offload(work, 1))
    assert await asyncio.to_thread(begun.wait, 10)
    go.set()
    assert await task == 2
    with pytest.raises(ValueError, match="-1"):
        await offload_disk(work, -1)


async def test_a_cancelled_caller_goes_on_when_the_work_is_over() -> None:
    """A thread cannot be ended, so nothing of it may happen after its caller was told that it is cancelled."""
    begun, go = threading.Event(), threading.Event()
    written: list[str] = []

    def work() -> None:
        begun.set()
        assert go.wait(60)
        written.append("written")

    task = asyncio.create_task(offload(work))
    assert await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):  # twice, as a person in a hurry does
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert written == ["written"]


@pytest.mark.parametrize("way", [offload, offload_and_hand_on])
async def test_what_has_not_begun_is_never_done(way: Callable[..., Coroutine[Any, Any, object]]) -> None:
    """A caller that is cancelled while all threads are busy takes its work back."""
    go = threading.Event()
    busy = [asyncio.create_task(offload(go.wait, 120)) for _ in range(2)]
    done: list[str] = []
    waiting = asyncio.create_task(way(done.append, "late"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    await asyncio.gather(*busy)
    assert done == []


async def test_a_flood_keeps_no_one_from_the_disk() -> None:
    """Computing and storing have threads of their own, and neither takes those of everybody else."""
    go = threading.Event()
    flood = [asyncio.create_task(offload(go.wait, 120)) for _ in range(40)]
    await asyncio.sleep(0)
    async with asyncio.timeout(120):
        assert await offload_disk(str, 1) == "1"
        assert await asyncio.to_thread(str, 2) == "2"
    go.set()
    await asyncio.gather(*flood)


async def test_what_is_handed_on_is_waited_for() -> None:
    """Done when the other thread is, also where the caller is cancelled: work that has begun is followed to its end.
    What either of them raises comes back.
    """
    more: Future[str] = Future()
    task, cancelled = (asyncio.create_task(offload_and_hand_on(lambda: (1, more))) for _ in range(2))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    await asyncio.sleep(0.01)
    assert [it.done() for it in (task, cancelled)] == [False, False]
    more.set_result("written")
    assert await task == (1, "written")
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    failed: Future[str] = Future()
    failed.set_exception(OSError("full"))
    with pytest.raises(OSError, match="full"):
        await offload_and_hand_on(lambda: (1, failed))
    with pytest.raises(ZeroDivisionError):
        await offload_and_hand_on(lambda: (1 // 0, more))
