"""The local engine as a site."""

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.turns import HELDOUT
from orchestrator.wiring.site import Site
from sandbox import Backend, BackendConfig, DockerConfig, InputStore, Job, Limits, Rates
from sandbox import ImageSpec as BakeSpec

# Of the machine's memory; the rest is for the engine, the page cache and us.
_MEMORY_SHARE = 0.8
_KILL_S = 10.0
# A folder for each, by NVIDIA's driver. No two chambers share one.
_GPUS = Path("/proc/driver/nvidia/gpus")


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
    store = InputStore(config.inputs_folder)

    async def bake(spec: ImageSpec) -> Image:
        wanted = BakeSpec(base=spec.base or base_image, pip=spec.pip, apt=spec.apt, run=spec.run)
        baked = await config.bake(wanted, progress)
        return Image(baked.name, baked.digest)

    async def look_for_gpus(asked: Iterable[Limits]) -> None:
        """A GPU that the engine can not give is refused before a run is opened; what a chamber sees is the proof."""
        for limits in {limits.gpu: limits for limits in asked if limits.gpu}.values():
            async with await backend.open(Job(command=("true",), image=base_image, limits=limits)):
                pass

    async def keep_apart(realms: Iterable[tuple[str, str]]) -> None:
        """A copy of a large image takes longer than a chamber may; made here, it is nobody's delay."""
        for image, realm in sorted(realms):
            if realm:
                who = "held-out trials" if realm == HELDOUT else "trials that hold hidden files or gold"
                progress(f"makes sure of a copy of {image} that only {who} use")
                async with await backend.open(Job(command=("true",), image=image, realm=realm)):
                    pass

    return Site(
        name=f"docker/{config.runtime}",
        backend=backend,
        bake=bake,
        add_input=store.add,
        usd_per_second=config.rates.per_second,
        ceiling=local_ceiling,
        spare_s=spare_of(config),
        ask_first=look_for_gpus,
        keep_apart=keep_apart,
    )


def spare_of(config: BackendConfig) -> float:
    """Upload and collection have deadlines of their own; the kill takes a moment."""
    return config.deadlines.around + _KILL_S


def local_ceiling(limits: Limits) -> int:
    """How many chambers of such limits this machine can hold without one slowing another."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE
    by_cpu = (os.cpu_count() or 1) / limits.cpus
    by_gpu = [_gpus_here() / limits.gpu.count] if limits.gpu else []
    return max(1, int(min([by_cpu, memory / limits.memory, *by_gpu])))


def _gpus_here() -> int:
    return len(list(_GPUS.glob("*")))
