"""How long some work, one turn of the event loop, or one C call of a thread beside it, keeps the processor.

Processor time of their own threads, not the clock's: a busy machine makes no turn and no call longer. A machine that is
stopped from outside does, and so does a kernel that finds room for 64 MiB in the middle of a turn. Both happen once,
and what bytes cost they cost every time: so the least of a few is taken, or the first that is short enough.
"""

import asyncio
import gc
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from orchestrator import offload

# A turn has room for a slice of reading, for whatever else is ready, and for a machine that is slow.
MOST_S = 0.05
_TRIES = 4
# Hashing, and reading and writing files, let the others have the interpreter.
_LETS_GO = frozenset({"openssl_sha256", "HASH.update", "BufferedReader.read", "BufferedWriter.write", "FileIO.write"})


@dataclass
class Turns:
    """Of one event loop, while it was watched."""

    longest_s: float = 0.0
    count: int = 0


@contextmanager
def watched_turns() -> Iterator[Turns]:
    """Measures every turn of every loop of this process. What the tests themselves hold is not looked through for
    garbage, then and later.
    """
    turns = Turns()
    gc.freeze()
    run_once: Any = asyncio.BaseEventLoop._run_once  # type: ignore[attr-defined]

    def measured(loop: asyncio.BaseEventLoop) -> None:
        started = time.thread_time()
        run_once(loop)
        turns.count += 1
        turns.longest_s = max(turns.longest_s, time.thread_time() - started)

    asyncio.BaseEventLoop._run_once = measured  # type: ignore[attr-defined]
    try:
        yield turns
    finally:
        asyncio.BaseEventLoop._run_once = run_once  # type: ignore[attr-defined]


async def longest_turn(scene: Callable[[], Awaitable[None]], most_s: float = MOST_S) -> float:
    """Of the loop while the scene is played: the least of a few."""
    least = math.inf
    for _ in range(_TRIES):
        with watched_turns() as turns:
            await scene()
        least = min(least, turns.longest_s)
        if least < most_s:
            break
    return least


def least_time(work: Callable[[], object], most_s: float) -> float:
    """Of the processor for this work: the least of a few."""
    least = math.inf
    for _ in range(_TRIES):
        started = time.thread_time()
        work()
        least = min(least, time.thread_time() - started)
        if least < most_s:
            break
    return least


@dataclass
class Calls:
    """Of the threads that work off the loop: the longest of their calls of C code, and its name."""

    longest_s: float = 0.0
    name: str = ""
    count: int = 0


@contextmanager
def watched_calls() -> Iterator[Calls]:
    """Measures every call of C code in offloaded work, up to where it calls back or returns: no other thread, the
    loop's least of all, has the interpreter meanwhile.
    """
    calls = Calls()
    begin: Any = offload.begin

    def profiled(work: Callable[[], object]) -> object:
        name, started = "", 0.0

        def hear(_: FrameType, event: str, what: Any) -> None:
            nonlocal name, started
            took = time.thread_time() - started
            if name and took > calls.longest_s:
                calls.longest_s, calls.name = took, name
            keeps = event == "c_call" and what is not os.write and what.__qualname__ not in _LETS_GO
            name = what.__qualname__ if keeps else ""
            calls.count += bool(name)
            started = time.thread_time()

        sys.setprofile(hear)
        try:
            return work()
        finally:
            sys.setprofile(None)

    offload.begin = lambda lane, work: begin(lane, lambda: profiled(work))
    try:
        yield calls
    finally:
        offload.begin = begin


async def longest_call(scene: Callable[[], Awaitable[None]]) -> Calls:
    """Of the threads off the loop while the scene is played: the shortest of a few."""
    least = Calls(math.inf)
    for _ in range(_TRIES):
        with watched_calls() as calls:
            await scene()
        least = min(least, calls, key=lambda it: it.longest_s)
        if least.longest_s < MOST_S:
            break
    return least
