"""What a fresh sandbox costs for one small program, from the wish for it until it is gone: ours beside others'.

All kinds take turns in one run, on one image. Theirs need another Docker engine than ours, on which `docker run` is
measured, too. Files go in and out wherever there is a way: not by a plain process, bare `runc` and `docker run`.
"""

import asyncio
import contextlib
import json
import math
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.latency import docker_run, plain_process
from benchmarks.runtime import JOB, RUNTIMES, Bare, one_chamber, rate
from benchmarks.their_engine import TheirEngine, their_engine
from benchmarks.their_packages import install
from orchestrator.machine.programs import Unprepared, child_environment, last_line
from sandbox import DockerConfig, RuncConfig
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.runc.backend import RuncBackend
from sandbox.posture import seccomp_profile

DRIVER = Path(__file__).with_name("their_sandboxes.py")
WIDTHS = (2, 4)
PATIENCE_S = 600
SOURCE = b"print('hello')\n" * 100
DOCKER_RUN = "`docker run --rm`, same posture"
OURS = tuple(f"our {name} backend" for name in RUNTIMES)


@dataclass(frozen=True)
class Here:
    """Made by this process; `many` tell what a minute gives."""

    make: Callable[[], Awaitable[object]]
    many: int = 60

    async def one(self) -> float:
        started = time.perf_counter()
        await self.make()
        return time.perf_counter() - started

    async def a_minute(self, width: int) -> float:
        async def made() -> None:
            await self.make()

        return await rate(made, self.many, width)


@dataclass(frozen=True)
class Theirs:
    """Made by processes of their own, one for each that is made at a time: theirs wait with the loop blocked."""

    drivers: Sequence[asyncio.subprocess.Process]
    log: Path
    many: int = 16

    async def one(self) -> float:
        return (await self._made(self.drivers[0], 1))[0]

    async def a_minute(self, width: int) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(self._made(driver, self.many // width) for driver in self.drivers[:width]))
        return self.many / (time.perf_counter() - started) * 60

    async def ready(self) -> None:
        await asyncio.gather(*(self._made(driver, 0) for driver in self.drivers))

    async def _made(self, driver: asyncio.subprocess.Process, count: int) -> list[float]:
        if driver.stdin is None or driver.stdout is None:
            raise RuntimeError("the driver was started without pipes")
        driver.stdin.write(f"{count}\n".encode())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                # What the package itself prints comes between.
                async for line in driver.stdout:
                    if line.startswith(b"["):
                        return [float(seconds) for seconds in json.loads(line)]
        raise Unprepared(last_line(self.log.read_text(errors="replace")))


Sandboxes = Here | Theirs


async def measure(samples: int = 15, rounds: int = 2) -> list[Figure]:
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="blastdoor-bench-")))
        _install("runc", "crun", log=folder / "apt.log")
        known, absent = await _known(stack, folder)
        seconds: dict[str, list[float]] = {name: [] for name in known}
        a_minute: dict[str, list[float]] = {name: [] for name in known}
        for way in known.values():
            await way.one()
        for _ in range(samples):
            for name, way in known.items():
                seconds[name].append(await way.one())
        for _ in range(rounds):
            for name, way in known.items():
                a_minute[name].append(max([await way.a_minute(width) for width in WIDTHS]))
    return [*_figures(seconds, a_minute), *(Figure(f"{name}: {why}", math.nan, "") for name, why in absent.items())]


def _install(*names: str, log: Path) -> None:
    """Programs of the distribution. Raises Unprepared where they cannot be had."""
    from distribution import require

    require(*names, log=log)


def _figures(seconds: Mapping[str, Sequence[float]], a_minute: Mapping[str, Sequence[float]]) -> list[Figure]:
    figures = []
    for name in seconds:
        figures.append(Figure(name, statistics.median(seconds[name]) * 1000, "ms"))
        figures.append(Figure(f"{name}, at the best width of 2 and 4", statistics.median(a_minute[name]), "/min"))
    for ours in OURS:
        for name in seconds:
            if name not in OURS:
                pairs = zip(seconds[name], seconds[ours], strict=True)
                ratio = statistics.median(theirs / our for theirs, our in pairs)
                figures.append(Figure(f"{name} / {ours}, time", ratio, "x"))
                pairs = zip(a_minute[ours], a_minute[name], strict=True)
                ratio = statistics.median(our / theirs for our, theirs in pairs)
                figures.append(Figure(f"{ours} / {name}, a minute", ratio, "x"))
    return figures


async def _known(stack: contextlib.AsyncExitStack, folder: Path) -> tuple[dict[str, Sandboxes], dict[str, str]]:
    """What there is on this machine, and why the rest is not."""
    backends = {name: await RuncBackend.connect(RuncConfig(runtime=name, warm=0)) for name in RUNTIMES}
    for backend in backends.values():
        stack.push_async_callback(backend.close)
    root = (await backends["runc"].images.image(JOB.image)).folder
    (folder / "bare").mkdir()
    known: dict[str, Sandboxes] = {
        "plain process": Here(partial(asyncio.to_thread, plain_process)),
        "bare `runc run`": Here(Bare(root, folder / "bare").one),
    }
    for ours, backend in zip(OURS, backends.values(), strict=True):
        known[ours] = Here(partial(one_chamber, backend))
    absent: dict[str, str] = {}
    try:
        _install("bwrap", log=folder / "apt.log")
        bubblewrap(root)
        known["bubblewrap"] = Here(partial(asyncio.to_thread, bubblewrap, root))
    except Unprepared as error:
        absent["bubblewrap"] = str(error)
    engine: TheirEngine | None = None
    try:
        _install("nsenter", "unshare", "ip", "dpkg-deb", log=folder / "apt.log")
        engine = await asyncio.to_thread(stack.enter_context, their_engine(folder / "engine"))
        await asyncio.to_thread(engine.take, JOB.image)
    except Unprepared as error:
        absent |= {"Inspect's Docker sandbox": str(error), "SWE-ReX's Docker deployment": str(error)}
        engine = None
    known |= await _by_docker(stack, folder, engine)
    if engine:
        for title, add in (("Inspect's Docker sandbox", _inspect), ("SWE-ReX's Docker deployment", _swerex)):
            try:
                known[title] = await stack.enter_async_context(add(engine, folder))
            except Unprepared as error:
                absent[title] = str(error)
    return known, absent


async def _by_docker(
    stack: contextlib.AsyncExitStack, folder: Path, theirs: TheirEngine | None
) -> dict[str, Sandboxes]:
    profile = folder / "seccomp.json"
    profile.write_text(seccomp_profile())
    run = partial(asyncio.to_thread, docker_run, profile)
    known: dict[str, Sandboxes] = {
        DOCKER_RUN: Here(run, many=20),
        "our Docker backend": Here(await _chambers(stack, DockerConfig(warm=0)), many=20),
    }
    if theirs:
        run = partial(run, child_environment(**theirs.environment))
        known[f"{DOCKER_RUN}, on their engine"] = Here(run, many=20)
        chambers = await _chambers(stack, DockerConfig(host=theirs.host, warm=0))
        known["our Docker backend, on their engine"] = Here(chambers, many=20)
    return known


async def _chambers(stack: contextlib.AsyncExitStack, config: DockerConfig) -> Callable[[], Awaitable[None]]:
    backend = await DockerBackend.connect(config)
    stack.push_async_callback(backend.close)
    return partial(one_chamber, backend)


def bubblewrap(root: Path) -> None:
    """All namespaces, a read-only root, no capabilities; a folder of the machine's for files, the rest in memory."""
    with tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as name:
        Path(name, "main.py").write_bytes(SOURCE)
        flags = ["--unshare-all", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL", "--new-session"]
        flags += ["--die-with-parent", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]
        flags += ["--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108  inside
        flags += ["--bind", name, "/mnt", "--chdir", "/mnt"]
        code = subprocess.run(["bwrap", *flags, "python3", "-c", "open('x','w').write('y')"], check=False).returncode
        if code or Path(name, "x").read_bytes() != b"y":
            raise Unprepared(f"it ended with {code} and gave no file")


@contextlib.asynccontextmanager
async def _inspect(engine: TheirEngine, folder: Path) -> AsyncIterator[Theirs]:
    python = await asyncio.to_thread(install, "inspect", folder / "inspect")
    async with _driven(engine, folder, (str(python), str(DRIVER), "inspect", JOB.image)) as sandboxes:
        yield sandboxes


@contextlib.asynccontextmanager
async def _swerex(engine: TheirEngine, folder: Path) -> AsyncIterator[Theirs]:
    python = await asyncio.to_thread(install, "swerex", folder / "swerex")
    image = await asyncio.to_thread(engine.add_server, JOB.image, folder / "server")
    words = (*engine.within, str(python), str(DRIVER), "swerex", image)
    async with _driven(engine, folder, words) as sandboxes:
        yield sandboxes


@contextlib.asynccontextmanager
async def _driven(engine: TheirEngine, folder: Path, command: Sequence[str]) -> AsyncIterator[Theirs]:
    log = folder / f"{command[-2]}.log"
    with log.open("wb") as file:
        start = partial(
            asyncio.create_subprocess_exec,
            *command,
            env=child_environment(**engine.environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
        )
        drivers = [await start() for _ in range(max(WIDTHS))]
    sandboxes = Theirs(drivers, log)
    try:
        await sandboxes.ready()
        yield sandboxes
    finally:
        for driver in drivers:
            if driver.stdin:
                driver.stdin.close()
            try:
                await asyncio.wait_for(driver.wait(), PATIENCE_S)
            except TimeoutError:
                driver.kill()
                await driver.wait()
