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
from typing import Any, Literal

from benchmarks.figure import Figure
from benchmarks.latency import plain_process
from sandbox import Bundle, DockerConfig, Job, Limits, Outcome, RuncConfig
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.runc.backend import RuncBackend

JOB = Job(command=("python3", "-c", "open('/work/out/x','w').write('y')"), limits=Limits(cpus=2))
BUNDLE = Bundle({"main.py": b"print('hello')\n" * 100})
WIDTHS = (2, 4, 8)
RUNTIMES: tuple[Literal["runc", "crun"], ...] = ("runc", "crun")


def _config(runtime: Literal["runc", "crun"], warm: int = 0) -> RuncConfig:
    return RuncConfig(runtime=runtime, warm=warm)


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


async def rate(one: Callable[[], Awaitable[None]], count: int, width: int) -> float:
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await one()

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(width)))
    return count / (time.perf_counter() - started) * 60


async def _latency(samples: int, bare: Bare) -> list[Figure]:
    cold = {name: await RuncBackend.connect(_config(name)) for name in RUNTIMES}
    warm = {name: await RuncBackend.connect(_config(name, warm=1)) for name in RUNTIMES}
    found: dict[str, list[float]] = {}

    def note(what: str, seconds: float) -> None:
        found.setdefault(what, []).append(seconds * 1000)

    try:
        for backend in warm.values():
            await (await backend.open(JOB)).kill()
        for _ in range(samples):
            note("plain", await asyncio.to_thread(plain_process))
            note("bare", await asyncio.to_thread(bare.run))
            for name in RUNTIMES:
                note(f"cold {name}", await seen_by_trial(cold[name], warm=False))
                note(f"warm {name}", await seen_by_trial(warm[name], warm=True))
                await asyncio.sleep(0.3)  # the next warm chamber is being made: let it finish before the others run
    finally:
        for backend in (*cold.values(), *warm.values()):
            await backend.close()
    median = {what: statistics.median(values) for what, values in found.items()}
    figures = [
        Figure("plain process `python3 -c pass`", median["plain"], "ms"),
        Figure("bare `runc run`, `python3 -c pass`", median["bare"], "ms"),
    ]
    for name in RUNTIMES:
        for kind, goal in (("cold", "<= 3.5"), ("warm", "<= 1.6")):
            took = median[f"{kind} {name}"]
            figures.append(Figure(f"{kind} chamber by {name}, files in and out", took, "ms"))
            figures.append(Figure(f"{kind} by {name} / plain process", took / median["plain"], "x", goal))
    return figures


async def _throughput(rounds: int, count: int, bare: Bare) -> list[Figure]:
    backends: dict[str, DockerBackend | RuncBackend] = {
        "docker": await DockerBackend.connect(DockerConfig()),
        **{str(name): await RuncBackend.connect(_config(name)) for name in RUNTIMES},
    }
    rates: dict[str, list[float]] = {}
    many: dict[str, Callable[[], Awaitable[None]]] = {"bare": bare.one}
    many |= {name: partial(one_chamber, backend) for name, backend in backends.items()}
    try:
        for _ in range(rounds):
            for name, one in many.items():
                few = count // 3 if name == "docker" else count
                rates.setdefault(name, []).append(max([await rate(one, few, width) for width in WIDTHS]))
    finally:
        for backend in backends.values():
            await backend.close()

    def beside(name: str, other: str) -> float:
        return statistics.median(ours / theirs for ours, theirs in zip(rates[name], rates[other], strict=True))

    figures = [
        Figure("bare `runc run`, at the best width", statistics.median(rates["bare"]), "/min"),
        Figure("fresh chambers of the Docker backend, files in and out", statistics.median(rates["docker"]), "/min"),
    ]
    for name in RUNTIMES:
        a_minute = statistics.median(rates[name])
        figures += [
            Figure(f"fresh chambers by {name}, files in and out, at the best width", a_minute, "/min"),
            Figure(f"by {name} / bare `runc`", beside(name, "bare"), "x", ">= 0.8"),
            Figure(f"by {name} / Docker backend", beside(name, "docker"), "x", ">= 5"),
        ]
    return figures


def _used() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


async def _processor(samples: int, bare: Bare) -> list[Figure]:
    """What a busy machine cannot distort much: processor time, ours, the runtime's and the chamber's."""
    backends = {name: await RuncBackend.connect(_config(name)) for name in RUNTIMES}
    used = dict.fromkeys(("bare", *RUNTIMES), 0.0)
    try:
        for backend in backends.values():
            await one_chamber(backend)
        for _ in range(samples):
            for name, backend in backends.items():
                before = _used()
                async with await backend.open(JOB) as chamber:
                    _require(await chamber.run(BUNDLE))
                    # Its end has been ordered, and is begun when we wait for the next time: its group is still there.
                    group = backend.estate.group(chamber.name.rpartition("-")[2])
                    inside = backend.estate.cgroups.cpu_seconds(group)
                used[name] += _used() - before + inside
            before = _used()
            await bare.one()
            used["bare"] += _used() - before
    finally:
        for backend in backends.values():
            await backend.close()
    figures = [Figure("processor time of bare `runc run`", used["bare"] / samples * 1000, "ms")]
    for name in RUNTIMES:
        figures += [
            Figure(f"processor time of a chamber by {name}, orchestrator included", used[name] / samples * 1000, "ms"),
            Figure(f"bare `runc` / chamber by {name}, processor time", used["bare"] / used[name], "x"),
        ]
    return figures


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
