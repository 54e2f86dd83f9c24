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


async def _gaps(work: Awaitable[object]) -> list[float]:
    """Seconds between two ticks while the work goes on, and for two seconds at least."""
    running = asyncio.ensure_future(work)
    gaps: list[float] = []
    started = last = time.perf_counter()
    while not running.done() or last < started + LEAST_S:
        await asyncio.sleep(TICK_S)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    running.result()
    return sorted(gaps)


def _figures(name: str, gaps: list[float]) -> list[Figure]:
    median, late = gaps[len(gaps) // 2] * 1000, gaps[int(0.99 * (len(gaps) - 1))] * 1000
    return [
        Figure(f"ticker beside {name}, p50", median, "ms"),
        Figure(f"ticker beside {name}, p99", late, "ms", "<= 20"),
        Figure(f"ticker beside {name}, longest gap", gaps[-1] * 1000, "ms", "<= 100"),
    ]


async def measure() -> list[Figure]:
    # As every command does once it is loaded: what all benchmarks load is no load of a campaign.
    gc.collect()
    gc.freeze()
    figures = []
    for name, make in HOSTILE.items():
        with tempfile.TemporaryDirectory() as folder:
            async with opened_campaign(Path(folder), make(1)) as opened:
                figures += _figures(f"a campaign, {name}", await _gaps(opened.campaign.run()))
    backend = await DockerConfig().connect()
    try:
        for name, line in CHAMBERS.items():
            job = Job(command=("sh", "-c", line), limits=Limits(cpus=1, wall=60))
            async with await backend.open(job) as chamber:
                work = chamber.run(Bundle({}), listener=_Ear())
                figures += _figures(f"a chamber, {name}", await _gaps(work))
    finally:
        await backend.close()
    return figures
