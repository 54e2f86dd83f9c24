"""Chambers without a daemon, against a plain process, the bare runtime, and the Docker backend: all in one run."""

import asyncio
import json
import resource
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from benchmarks.latency import plain_process
from sandbox import Bundle, DockerConfig, Job, Limits, Outcome, RuncConfig
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.runc.backend import RuncBackend

JOB = Job(command=("python3", "-c", "open('/work/out/x','w').write('y')"), limits=Limits(cpus=2))
BUNDLE = Bundle({"main.py": b"print('hello')\n" * 100})
WIDTHS = (2, 4)


class Bare:
    """`runc run` with namespaces and a read-only root, and nothing of our hardening: no files in or out either."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        subprocess.run(["runc", "spec", "--bundle", str(folder)], check=True)
        spec: dict[str, Any] = json.loads((folder / "config.json").read_text())
        spec["process"] |= {"terminal": False, "args": ["python3", "-I", "-c", "pass"]}
        spec["root"] = {"path": str(root), "readonly": True}
        (folder / "config.json").write_text(json.dumps(spec))

    def run(self) -> float:
        command = ["runc", "--root", str(self._folder / "state"), "run", "--bundle", str(self._folder)]
        started = time.perf_counter()
        subprocess.run([*command, f"blastdoor-bench-{uuid.uuid4().hex[:12]}"], stdin=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started

    async def one(self) -> None:
        await asyncio.to_thread(self.run)


async def one_chamber(backend: DockerBackend | RuncBackend) -> None:
    async with await backend.open(JOB) as chamber:
        _require(await chamber.run(BUNDLE))


async def seen_by_trial(backend: RuncBackend, *, warm: bool) -> float:
    """Open, deliver, run, harvest, as a trial sees it; the removal goes on behind its back."""
    while warm and not backend.warm_ready:  # noqa: ASYNC110  the pool has no event for it, and needs none elsewhere
        await asyncio.sleep(0.02)
    started = time.perf_counter()
    async with await backend.open(JOB) as chamber:
        _require(await chamber.run(BUNDLE))
        return time.perf_counter() - started


def _require(outcome: Outcome) -> None:
    if outcome.outputs != {"x": b"y"}:
        raise RuntimeError(f"{outcome.ending}: {outcome.reason}")


async def _rate(one: Callable[[], Awaitable[None]], count: int, width: int) -> float:
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await one()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(width)))
    return count / (time.perf_counter() - started) * 60


async def _latency(samples: int, bare: Bare) -> list[Figure]:
    cold_backend = await RuncBackend.connect(RuncConfig())
    warm_backend = await RuncBackend.connect(RuncConfig(warm=1))
    found: dict[str, list[float]] = {name: [] for name in ("plain", "bare", "cold", "warm")}
    try:
        await (await warm_backend.open(JOB)).kill()
        for _ in range(samples):
            found["plain"].append(await asyncio.to_thread(plain_process))
            found["bare"].append(await asyncio.to_thread(bare.run))
            found["cold"].append(await seen_by_trial(cold_backend, warm=False))
            found["warm"].append(await seen_by_trial(warm_backend, warm=True))
            await asyncio.sleep(0.3)  # the next warm chamber is being made: let it finish before the others run
    finally:
        await cold_backend.close()
        await warm_backend.close()
    plain, bare_ms, cold, warm = (statistics.median(values) * 1000 for values in found.values())
    return [
        Figure("plain process `python3 -c pass`", plain, "ms"),
        Figure("bare `runc run`, `python3 -c pass`", bare_ms, "ms"),
        Figure("cold chamber without a daemon, files in and out", cold, "ms"),
        Figure("warm chamber without a daemon, files in and out", warm, "ms"),
        Figure("cold / plain process", cold / plain, "x", "<= 3.5"),
        Figure("warm / plain process", warm / plain, "x", "<= 1.6"),
    ]


async def _throughput(rounds: int, count: int, bare: Bare) -> list[Figure]:
    ours, docker = await RuncBackend.connect(RuncConfig()), await DockerBackend.connect(DockerConfig())
    rates: dict[str, list[float]] = {"bare": [], "ours": [], "docker": []}
    try:
        for _ in range(rounds):
            for name, one in (("bare", bare.one), ("ours", partial(one_chamber, ours))):
                rates[name].append(max([await _rate(one, count, width) for width in WIDTHS]))
            rates["docker"].append(await _rate(partial(one_chamber, docker), max(8, count // 4), WIDTHS[-1]))
    finally:
        await ours.close()
        await docker.close()
    bare_rate, our_rate, docker_rate = (statistics.median(values) for values in rates.values())
    to_bare = statistics.median(b / a for a, b in zip(rates["bare"], rates["ours"], strict=True))
    to_docker = statistics.median(b / a for a, b in zip(rates["docker"], rates["ours"], strict=True))
    return [
        Figure("bare `runc run`, at the best width", bare_rate, "/min"),
        Figure("fresh chambers without a daemon, files in and out, at the best width", our_rate, "/min"),
        Figure("fresh chambers of the Docker backend, files in and out", docker_rate, "/min"),
        Figure("without a daemon / bare `runc`", to_bare, "x", ">= 0.8"),
        Figure("without a daemon / Docker backend", to_docker, "x", ">= 5"),
    ]


def _used() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


async def _processor(samples: int, bare: Bare) -> list[Figure]:
    """What a busy machine cannot distort much: processor time, ours, the runtime's and the chamber's."""
    backend = await RuncBackend.connect(RuncConfig())
    ours = theirs = 0.0
    try:
        await one_chamber(backend)
        for _ in range(samples):
            before = _used()
            async with await backend.open(JOB) as chamber:
                _require(await chamber.run(BUNDLE))
                # Its end has been ordered, and is begun when we wait for the next time: its group is still there.
                inside = backend.estate.cgroups.cpu_seconds(backend.estate.group(chamber.name.rpartition("-")[2]))
            ours += _used() - before + inside
            before = _used()
            await bare.one()
            theirs += _used() - before
    finally:
        await backend.close()
    return [
        Figure("processor time of bare `runc run`", theirs / samples * 1000, "ms"),
        Figure("processor time of a chamber without a daemon, orchestrator included", ours / samples * 1000, "ms"),
        Figure("bare `runc` / chamber without a daemon, processor time", theirs / ours, "x"),
    ]


async def measure(samples: int = 20, rounds: int = 3, count: int = 60) -> list[Figure]:
    backend = await RuncBackend.connect(RuncConfig())
    try:
        root = (await backend.images.image(JOB.image)).folder
    finally:
        await backend.close()
    with tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as folder:
        bare = Bare(root, Path(folder))
        return [
            *await _latency(samples, bare),
            *await _processor(samples, bare),
            *await _throughput(rounds, count, bare),
        ]
