"""Bytes that are slow to read: nobody else on the orchestrator's event loop may wait for them.

How long the loop was kept is told in processor time of its own thread between two ticks of a millisecond, so that a
busy machine is not taken for a success of the attack. Each row first holds the loop itself, which must be noticed.
"""

import asyncio
import gc
import math
import time
from collections.abc import Awaitable
from typing import TypeVar

from sandbox.attacks.attack import QUICK, Arena, Finding, attack
from sandbox.attacks.forge import Seen, run_seen
from sandbox.job import Ending, Limits
from sandbox.wire.log import Report

MIB = 1 << 20
TICK_S = 0.001
MOST_S = 0.05
RUNS = 3
T = TypeVar("T")

LIMITS = QUICK.model_copy(update={"log_bytes": 4 * MIB})
TREE = Limits(wall=60, memory="512MiB", work_bytes="128MiB", output_files=1024, output_bytes=64 * MIB)
FILES, FILE_BYTES = 1024, 60 * 1024


async def longest_turn(work: Awaitable[T]) -> tuple[T, float]:
    """The result, and the longest that a ticker beside it was kept waiting, in seconds of processor time."""
    running = asyncio.ensure_future(work)
    longest = 0.0
    while not running.done():
        before = time.thread_time()
        await asyncio.sleep(TICK_S)
        longest = max(longest, time.thread_time() - before)
    return running.result(), longest


async def _is_noticed() -> bool:
    """The control: a loop that is held for longer than is allowed."""

    async def held() -> None:
        until = time.thread_time() + 2 * MOST_S
        while time.thread_time() < until:
            pass

    return (await longest_turn(held()))[1] > MOST_S


class _Ear:
    def __init__(self) -> None:
        self.lines = self.reports = 0

    def line(self, text: str) -> None:
        self.lines += text is not None

    def report(self, report: Report) -> None:
        self.reports += report.step > 0


async def _kept(arena: Arena, source: str, limits: Limits) -> tuple[Seen, _Ear, float, bool]:
    """The least of three runs, or the first that is short enough: what bytes cost they cost every time. A kernel that
    brings back memory of ours, or finds room in the middle of a turn, does so now and then, on our time.
    """
    noticed = await _is_noticed()
    gc.freeze()  # looking through what the process held before takes long where that is much, and is nobody's attack
    least = math.inf
    for _ in range(RUNS):
        ear = _Ear()
        seen, longest = await longest_turn(run_seen(arena, source, limits=limits, listener=ear))
        least = min(least, longest)
        if least < MOST_S:
            break
    return seen, ear, least, noticed


def _finding(seen: Seen, ending: Ending, longest: float, ran: bool, what: str) -> Finding:
    blocked = seen.outcome.ending is ending and longest < MOST_S and seen.gone
    evidence = f"{what}; the event loop was kept for {longest * 1000:.1f} ms at most"
    return Finding(ran, blocked, str(seen.outcome.ending), evidence)


@attack("T82", "newlines, to keep the event loop")
async def newlines(arena: Arena) -> Finding:
    """Each costs more than its byte: they are heard in slices, and end at the cap on lines."""
    source = "import os\nfor _ in range(512):\n    os.write(1, b'\\n' * 65536)"
    seen, ear, longest, noticed = await _kept(arena, source, LIMITS)
    return _finding(seen, Ending.LOG_OVERFLOW, longest, noticed and ear.lines > 10_000, f"{ear.lines} lines heard")


@attack("T82", "report lines, to keep the event loop")
async def reports(arena: Arena) -> Finding:
    """Each is parsed: in slices, and up to the cap of the log."""
    line = b'::report {"step":1,"value":1}\n'
    source = f"import os\nfor _ in range(512):\n    os.write(1, {line!r} * 2048)"
    seen, ear, longest, noticed = await _kept(arena, source, LIMITS)
    ran = noticed and ear.reports > 10_000
    return _finding(seen, Ending.LOG_OVERFLOW, longest, ran, f"{ear.reports} reports heard")


@attack("T82", "an output tree of 1,024 files of 60 KiB, to keep the event loop")
async def tree(arena: Arena) -> Finding:
    """As many as may come, and nearly as large: all are taken, in slices."""
    source = f"for n in range({FILES}):\n    open(f'/work/out/{{n}}', 'wb').write(bytes([n % 256]) * {FILE_BYTES})"
    seen, _, longest, noticed = await _kept(arena, source, TREE)
    kept = seen.outcome.outputs
    whole = len(kept) == FILES and all(len(data) == FILE_BYTES for data in kept.values())
    return _finding(seen, Ending.COMPLETED, longest, noticed and whole, f"{len(kept)} files came")
