"""How late a ticker of one millisecond is beside each hostile input, on the same event loop."""

import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.hostile import HOSTILE, opened_campaign
from sandbox import Bundle, DockerConfig, Job, Limits, Report

TICK_S = 0.001
LEAST_S = 2.0
# In a chamber of its own on a real engine: what is sent, in a shell.
CHAMBERS = {
    "nothing hostile": "true",
    "newlines": "yes '' | head -c 1000000",
    "reports": 'yes \'::report {"step":1,"value":1}\' | head -c 12000000',
    "1,000 files of 60 KiB": "for n in $(seq 1000); do head -c 61440 /dev/zero >$BLASTDOOR_OUT/f$n; done",
}


class _Ear:
    def line(self, text: str) -> None:
        """Heard."""

    def report(self, report: Report) -> None:
        """Heard."""


async def gaps(work: Awaitable[object], least_s: float = LEAST_S) -> list[float]:
    """Seconds between two ticks while the work goes on, and for so long at least; the longest is the last."""
    running = asyncio.ensure_future(work)
    found: list[float] = []
    started = last = time.perf_counter()
    while not running.done() or last < started + least_s:
        await asyncio.sleep(TICK_S)
        now = time.perf_counter()
        found.append(now - last)
        last = now
    running.result()
    return sorted(found)


def share(found: list[float], part: float) -> float:
    """The one that so many are no longer than."""
    return found[int(part * (len(found) - 1))]


def _figures(name: str, found: list[float]) -> list[Figure]:
    median, late = share(found, 0.5) * 1000, share(found, 0.99) * 1000
    return [
        Figure(f"ticker beside {name}, p50", median, "ms"),
        Figure(f"ticker beside {name}, p99", late, "ms", "<= 20"),
        Figure(f"ticker beside {name}, longest gap", found[-1] * 1000, "ms", "<= 100"),
    ]


async def measure() -> list[Figure]:
    # As every command does once it is loaded: what all benchmarks load is no load of a campaign.
    gc.collect()
    gc.freeze()
    figures = []
    for name, make in HOSTILE.items():
        with tempfile.TemporaryDirectory() as folder:
            async with opened_campaign(Path(folder), make(1)) as opened:
                figures += _figures(f"a campaign, {name}", await gaps(opened.campaign.run()))
    backend = await DockerConfig().connect()
    try:
        for name, line in CHAMBERS.items():
            job = Job(command=("sh", "-c", line), limits=Limits(cpus=1, wall=60))
            async with await backend.open(job) as chamber:
                work = chamber.run(Bundle({}), listener=_Ear())
                figures += _figures(f"a chamber, {name}", await gaps(work))
    finally:
        await backend.close()
    return figures
