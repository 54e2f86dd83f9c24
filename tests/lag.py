"""How long one turn of the event loop keeps the processor: what a ticker beside it would wait for.

Processor time of the loop's own thread, not the clock's: a busy machine makes no turn longer.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# A turn has room for a slice of reading, for whatever else is ready, and for a machine that is slow.
MOST_S = 0.05


@dataclass
class Turns:
    """Of one event loop, while it was watched."""

    longest_s: float = 0.0
    count: int = 0


@contextmanager
def watched_turns() -> Iterator[Turns]:
    """Measures every turn of every loop of this process. What the tests themselves hold is not collected meanwhile."""
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
        gc.unfreeze()
        asyncio.BaseEventLoop._run_once = run_once  # type: ignore[attr-defined]
