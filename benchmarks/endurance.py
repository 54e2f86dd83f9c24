"""Many exchanges leave nothing behind: no memory, container, volume, thread or descriptor."""

import asyncio
import gc
import threading

import psutil

from benchmarks.figure import Figure
from benchmarks.throughput import WIDTH, one_chamber
from sandbox import DockerConfig
from sandbox.backends.docker import DockerBackend
from sandbox.backends.docker_lease import EXPIRY_LABEL, OWNER_LABEL

WARM_UP = 50


async def measure(exchanges: int) -> list[Figure]:
    me = psutil.Process()
    backend = await DockerBackend.connect(DockerConfig(warm=2))
    owner = backend.owner
    try:
        left = iter(range(exchanges + WARM_UP))
        before: dict[str, int] = {}

        async def worker() -> None:
            for number in left:
                await one_chamber(backend)
                if number == WARM_UP:
                    before.update(memory=me.memory_info().rss, descriptors=me.num_fds())

        await asyncio.gather(*(worker() for _ in range(WIDTH)))
        gc.collect()
        growth = me.memory_info().rss - before["memory"]
        descriptors = me.num_fds() - before["descriptors"]
    finally:
        await backend.close()
    threads = sum(thread.name.startswith("docker") for thread in threading.enumerate())
    check = await DockerBackend.connect(DockerConfig())
    try:
        containers = await check.engine.containers(f"{OWNER_LABEL}={owner}")
        volumes = [item for item in await check.engine.volumes(EXPIRY_LABEL) if item["Labels"][OWNER_LABEL] == owner]
    finally:
        await check.close()
    return [
        Figure(f"memory growth over {exchanges} exchanges", growth / 1024**2, "MiB", "<= 20"),
        Figure("descriptors more than before, chambers still warm", descriptors, "", "<= 8"),
        Figure("containers left", len(containers), "", "<= 0"),
        Figure("volumes left", len(volumes), "", "<= 0"),
        Figure("threads left", threads, "", "<= 0"),
    ]
