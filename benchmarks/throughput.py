"""Fresh hardened chambers with files in and out, against bare create, start, wait, remove on the same engine."""

import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable

from benchmarks.figure import Figure
from sandbox import Bundle, DockerConfig, Job, Limits
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine

WIDTH = 4
JOB = Job(command=("python3", "-c", "open('/work/out/x','w').write('y')"), limits=Limits(cpus=2))
BUNDLE = Bundle({"main.py": b"print('hello')\n" * 100})


async def _rate(one: Callable[[], Awaitable[None]], count: int) -> float:
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await one()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(WIDTH)))
    return count / (time.perf_counter() - started) * 60


async def _bare(engine: Engine) -> None:
    config: dict[str, object] = {
        "Image": JOB.image,
        "Cmd": ["python3", "-c", "pass"],
        "HostConfig": {"NetworkMode": "none", "LogConfig": {"Type": "none"}},
    }
    container = await engine.create(f"blastdoor-bench-{uuid.uuid4().hex[:12]}", config)
    await engine.start(container)
    await engine.wait(container, 60)
    await engine.remove(container)


async def one_chamber(backend: DockerBackend) -> None:
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(BUNDLE)
    if outcome.outputs != {"x": b"y"}:
        raise RuntimeError(f"{outcome.ending}: {outcome.reason}")


async def measure(rounds: int = 5, count: int = 24) -> list[Figure]:
    config = DockerConfig(warm=0)
    backend = await DockerBackend.connect(config)
    bare, ours = [], []
    try:
        for _ in range(rounds):
            bare.append(await _rate(lambda: _bare(backend.engine), count))
            ours.append(await _rate(lambda: one_chamber(backend), count))
    finally:
        await backend.close()
    ratio = statistics.median(b / a for a, b in zip(bare, ours, strict=True))
    return [
        Figure(f"bare create, start, wait, remove, {WIDTH} wide", statistics.median(bare), "/min"),
        Figure(f"fresh chambers, files in and out, {WIDTH} wide", statistics.median(ours), "/min"),
        Figure("chambers / bare", ratio, "x", ">= 0.9"),
    ]
