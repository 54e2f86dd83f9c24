"""Many exchanges leave nothing behind: no memory, container, volume, thread or descriptor."""

import asyncio
import gc
import threading

import psutil

from benchmarks.figure import Figure
from benchmarks.throughput import WIDTH, one_chamber
from sandbox import DockerConfig
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL

WARM_UP = 50


async def _exchange(count: int) -> str:
    """Exchanges through one backend, which is closed in the end; returns its owner."""
    backend = await DockerBackend.connect(DockerConfig(warm=2))
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await one_chamber(backend)

    try:
        await asyncio.gather(*(worker() for _ in range(WIDTH)))
    finally:
        await backend.close()
    return backend.owner


async def measure(exchanges: int) -> list[Figure]:
    me = psutil.Process()
    await _exchange(WARM_UP)
    gc.collect()
    memory, descriptors, threads = me.memory_info().rss, me.num_fds(), threading.active_count()
    owner = await _exchange(exchanges)
    gc.collect()
    growth = me.memory_info().rss - memory
    more_descriptors, more_threads = me.num_fds() - descriptors, threading.active_count() - threads
    engine = await asyncio.to_thread(Engine, DockerConfig().host)
    try:
        containers = await engine.containers(f"{OWNER_LABEL}={owner}")
        volumes = await engine.volumes(f"{OWNER_LABEL}={owner}")
    finally:
        engine.close()
    return [
        Figure(f"memory growth over {exchanges} exchanges", growth / 1024**2, "MiB", "<= 20"),
        Figure("descriptors more than before", more_descriptors, "", "<= 0"),
        Figure("threads more than before", more_threads, "", "<= 0"),
        Figure("containers left", len(containers), "", "<= 0"),
        Figure("volumes left", len(volumes), "", "<= 0"),
    ]
