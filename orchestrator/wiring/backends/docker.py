"""One's own Docker engine."""

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.turns import HELDOUT
from orchestrator.wiring.site import About, BackendContext, Progress, Provider, Reaped, Site
from sandbox import (
    Backend,
    BakedImage,
    Capabilities,
    Chamber,
    DockerConfig,
    InputStore,
    Job,
    Limits,
    Purse,
    Rates,
    Refused,
)
from sandbox import ImageSpec as BakeSpec
from sandbox.link import Deadlines

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.conformance.subject import Subject

# Of the machine's memory; the rest is for the engine, the page cache and us.
_MEMORY_SHARE = 0.8
_KILL_S = 10.0
# A folder for each, by NVIDIA's driver. No two chambers share one.
GPUS = Path("/proc/driver/nvidia/gpus")
# What an engine can do that nobody has asked yet.
ANY = Capabilities("an engine, not opened", relay=True, live_log=True, stop=True)
_READY_FOR_ATTACKS = 2


class Timed(Protocol):
    @property
    def deadlines(self) -> Deadlines: ...


class Local(Timed, Protocol):
    """Settings of what makes chambers on one's own machine."""

    @property
    def inputs_folder(self) -> Path: ...

    @property
    def rates(self) -> Rates: ...

    async def bake(self, spec: BakeSpec, progress: Callable[[str], None]) -> BakedImage: ...


class Unopened:
    """Stands where a backend will be: nothing is connected for a plan."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.purse: Purse | None = None
        self.unreaped: tuple[str, ...] = ()
        self.place = ""

    async def open(self, job: Job) -> Chamber:
        raise Refused(f"nothing is run for a plan, {job.command[0]} neither")

    async def stand_down(self) -> None:
        """Nothing stands."""

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        """There is nothing to end."""


class Docker(Provider):
    """Candidates, judge and agents share it."""

    meaningless: ClassVar = {
        "infra": "--infra says where SkyPilot rents and means nothing to docker; use it with --backend skypilot",
        "standing": "--standing is for what is rented; on docker the setting warm keeps chambers ready",
    }

    def __init__(self, context: BackendContext) -> None:
        self._settings, self._choice = context.settings, context.choice

    def config(self, **changed: Any) -> DockerConfig:
        return docker_config(self._settings, runtime=self._choice.runtime, **changed)

    def planned(self) -> Site:
        return self._with_gpu(site_of_engine(self.config(), Unopened(ANY), self._settings.image))

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        async with docker_site(self.config(), self._settings.image, progress) as site:
            yield self._with_gpu(site)

    def _with_gpu(self, site: Site) -> Site:
        return replace(site, gpu=self._choice.gpu, without_gpu=self._choice.without_gpu)

    async def about(self) -> About:
        from sandbox.engine_report import examine_engine

        report = await examine_engine(self.config())
        rows = [((part.name, part.version, part.minimum, part.remark), part.good) for part in report.parts]
        columns = ("part", "version", "minimum", "remark")
        return About("Engine", columns, rows, "engine", report.record(), report.runtimes)

    def subject(self) -> "Subject":
        from sandbox.conformance.docker import DockerSubject

        return DockerSubject(self.config())

    def target(self) -> "Target":
        from sandbox.attacks.hosts import LocalTarget

        return LocalTarget(self.config(warm=_READY_FOR_ATTACKS))

    async def reap(self) -> Reaped:
        backend = await self.config().connect()
        try:
            # Connecting reaps already; a second look finds what could not be ended then.
            return Reaped([*backend.reaped, *await backend.reap()], list(backend.unreaped))
        finally:
            await backend.close()


def docker_config(settings: Settings, **changed: Any) -> DockerConfig:
    """The engine that the settings name; `changed` holds what a flag said, None where it said nothing."""
    rates = Rates(cpu=settings.usd_per_hour / 3600)
    wanted: dict[str, Any] = {
        "runtime": settings.runtime,
        "warm": settings.warm,
        "disk_read": settings.disk_read,
        "rates": rates,
    }
    if settings.docker_host:
        wanted["host"] = settings.docker_host
    return DockerConfig(**wanted | {key: value for key, value in changed.items() if value is not None})


@asynccontextmanager
async def docker_site(
    config: DockerConfig, base_image: str, progress: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Site]:
    """The engine, connected; when it is left, everything that it still holds is ended."""
    backend = await config.connect()
    try:
        yield site_of_engine(config, backend, base_image, progress)
    finally:
        await backend.close()


def site_of_engine(
    config: DockerConfig, backend: Backend, base_image: str, progress: Callable[[str], None] = lambda _: None
) -> Site:
    return local_site(f"docker/{config.runtime}", config, backend, base_image, progress)


def local_site(
    name: str, config: Local, backend: Backend, base_image: str, progress: Callable[[str], None] = lambda _: None
) -> Site:
    """One's own machine, with or without an engine."""
    store = InputStore(config.inputs_folder)
    names: dict[str, str] = {}

    async def bake(spec: ImageSpec) -> Image:
        wanted = BakeSpec(base=spec.base or base_image, pip=spec.pip, apt=spec.apt, run=spec.run)
        baked = await config.bake(wanted, progress)
        image = Image(baked.name, baked.digest, by_digest=True)
        names[image.of_jobs] = image.name
        return image

    async def look_for_gpus(asked: Iterable[Limits]) -> None:
        """A GPU that the engine cannot give is refused before a run is opened; what a chamber sees is the proof."""
        for limits in {limits.gpu: limits for limits in asked if limits.gpu}.values():
            async with await backend.open(Job(command=("true",), image=base_image, limits=limits)):
                pass

    async def keep_apart(realms: Iterable[tuple[str, str]]) -> None:
        """A copy of a large image takes longer than a chamber may; made here, it is nobody's delay."""
        for image, realm in sorted(realms):
            if realm:
                who = "held-out trials" if realm == HELDOUT else "trials that hold hidden files or gold"
                progress(f"makes sure of a copy of {names.get(image, image)} that only {who} use")
                async with await backend.open(Job(command=("true",), image=image, realm=realm)):
                    pass

    return Site(
        name=name,
        backend=backend,
        bake=bake,
        add_input=store.add,
        usd_per_second=config.rates.per_second,
        ceiling=local_ceiling,
        spare_s=spare_of(config),
        ask_first=look_for_gpus,
        keep_apart=keep_apart,
    )


def spare_of(config: Timed) -> float:
    """Upload and collection have deadlines of their own; the kill takes a moment."""
    return config.deadlines.around + _KILL_S


def local_ceiling(limits: Limits) -> int:
    """How many chambers of such limits this machine can hold without one slowing another."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE
    by_cpu = (os.cpu_count() or 1) / limits.cpus
    by_gpu = [_gpus_here() / limits.gpu.count] if limits.gpu else []
    return max(1, int(min([by_cpu, memory / limits.memory, *by_gpu])))


def _gpus_here() -> int:
    return len(list(GPUS.glob("*")))
