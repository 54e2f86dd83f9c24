"""A candidate that floods its output costs the client no more memory than the cap."""

import asyncio
import time

import psutil

from benchmarks.figure import Figure
from sandbox import Bundle, DockerConfig, Ending, Job, Limits

MIB = 1024**2


async def _peak_growth(job: Job) -> tuple[float, Ending, int, float]:
    """The client's peak memory growth in MiB while the job runs."""
    me = psutil.Process()
    backend = await DockerConfig().connect()
    try:
        async with await backend.open(job) as chamber:
            before = peak = me.memory_info().rss
            running = asyncio.create_task(chamber.run(Bundle({})))
            started = time.perf_counter()
            while not running.done():
                await asyncio.wait({running}, timeout=0.05)
                peak = max(peak, me.memory_info().rss)
            outcome = running.result()
            return (peak - before) / MIB, outcome.ending, outcome.usage.log_bytes, time.perf_counter() - started
    finally:
        await backend.close()


async def measure(gigabytes: int = 10) -> list[Figure]:
    size = gigabytes * 10**9
    flood = ("sh", "-c", f"head -c {size} /dev/zero")
    drained = Job(command=flood, limits=Limits(wall=500, log_bytes=size, cpus=2))
    capped = Job(command=flood, limits=Limits(wall=500, log_bytes="1MiB", cpus=2))
    forged = Job(command=("sh", "-c", f"head -c {size} /dev/zero >/proc/1/fd/4"), limits=Limits(wall=500, cpus=2))
    growth, ending, count, seconds = await _peak_growth(drained)
    if ending is not Ending.COMPLETED or count != size:
        raise RuntimeError(f"the flood did not pass: {ending}, {count} bytes")
    capped_growth, capped_ending, _, _ = await _peak_growth(capped)
    if capped_ending is not Ending.LOG_OVERFLOW:
        raise RuntimeError(f"the cap did not hold: {capped_ending}")
    forged_growth, forged_ending, _, _ = await _peak_growth(forged)
    if forged_ending is not Ending.PROTOCOL:
        raise RuntimeError(f"the flood of PID 1's answers was not noticed: {forged_ending}")
    return [
        Figure(f"{gigabytes} GB of log drained at", size / 1e6 / seconds, "MB/s"),
        Figure(f"client memory while {gigabytes} GB pass", growth, "MiB", "<= 1"),
        Figure("client memory, log cap of 1 MiB, the flood is ended", capped_growth, "MiB", "<= 1"),
        Figure("client memory, PID 1's answers flooded instead", forged_growth, "MiB", "<= 1"),
    ]
