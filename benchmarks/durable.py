"""How late the event loop is while a wide campaign writes to a real disk, and how long the loop itself waits for one.

The folder is the working directory, not a temporary one, which may be in memory. What others do on the machine is in
the ticker's gaps, too; what is counted inside blocking calls on the loop's own thread is ours alone.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.campaign import TASK, program
from benchmarks.fake_site import fake_site, write_task
from benchmarks.figure import Figure
from benchmarks.lag import gaps, share
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts, Ledger
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign

ATTEMPTS, WIDTH = 300, 16
# All that waits for a disk or a database.
_BLOCKING: tuple[tuple[Any, str], ...] = (
    (Ledger, "append"),
    (Ledger, "requests"),
    (Artifacts, "sync"),
    (Artifacts, "keep"),
    (Artifacts, "keep_files"),
    (Candidates, "_write_all"),
    (os, "fsync"),
)


@contextmanager
def blocked() -> Iterator[list[float]]:
    """Seconds of each call that waits for a disk in the thread of the caller, those inside of another left out."""
    found: list[float] = []
    here, depth = threading.get_ident(), 0
    before = [(owner, name, getattr(owner, name)) for owner, name in _BLOCKING]

    def timed(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal depth
            if threading.get_ident() != here:
                return real(*args, **options)
            depth, started = depth + 1, time.perf_counter()
            try:
                return real(*args, **options)
            finally:
                depth -= 1
                if depth == 0:
                    found.append(time.perf_counter() - started)

        return call

    try:
        for owner, name, real in before:
            setattr(owner, name, timed(real))
        yield found
    finally:
        for owner, name, real in before:
            setattr(owner, name, real)


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".durable-") as folder:
        write_task(Path(folder), TASK, '{"x": 0.0, "y": 0}')
        flags = Flags(attempts=ATTEMPTS, width=WIDTH, rate=1e6, seed=1)
        async with open_campaign(Path(folder), fake_site(program, WIDTH), flags=flags) as opened:
            with blocked() as waits:
                started, used = time.perf_counter(), time.thread_time()
                late = await gaps(opened.campaign.run(), least_s=0.0)
                took, worked = time.perf_counter() - started, time.thread_time() - used
    what = f"{ATTEMPTS} attempts, {WIDTH} wide"
    return [
        Figure(f"{what}: loop lag, p90", share(late, 0.9) * 1000, "ms"),
        Figure(f"{what}: loop lag, p99", share(late, 0.99) * 1000, "ms", "<= 20"),
        Figure(f"{what}: loop lag, most", late[-1] * 1000, "ms"),
        Figure(f"{what}: the loop waits for disks, of all time", 100 * sum(waits) / took, "%", "<= 1"),
        Figure(f"{what}: longest wait for a disk on the loop", 1000 * max(waits, default=0.0), "ms", "<= 20"),
        Figure(f"{what}: processor of the loop's thread, each", 1000 * worked / ATTEMPTS, "ms"),
        Figure(f"{what}: a minute", 60 * ATTEMPTS / took, ""),
    ]
