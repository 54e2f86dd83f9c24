"""A backend on the yard, with or without a real machine behind it."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sandbox import Bundle, Job, Limits, Outcome, SkyPilotConfig
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.machine import Machine
from sandbox.box.report import Missing
from sandbox.tenancy import Tenancy
from tests.sandbox.skypilot.yard import YardProvisioner

PAUSE_S = 0.001
JOB = Job(command=("true",), limits=Limits(wall=5))
BUNDLE = Bundle({"a": b"b"})
Connect = Callable[..., Awaitable[SkyPilotBackend]]


class NoGuard:
    """The yard ends nobody's machines: that a dead owner's are found is what is tested."""

    async def post(self) -> None: ...

    async def ready(self) -> None: ...

    async def dismiss(self, *, all_ended: bool) -> None: ...


class NothingToShip:
    """Paper machines have every image."""

    async def identify(self, job: Job) -> Job:
        return job.model_copy(update={"image": "sha256:" + "0" * 64})

    async def ship(self, machine: Machine, job: Job, missing: Missing) -> None: ...

    def close(self) -> None: ...


class Purse:
    """Has so much, and remembers what it was asked and told."""

    def __init__(self, usd: float = 1e9) -> None:
        self.left = usd
        self.reserved: dict[str, float] = {}
        self.settled: dict[str, list[float]] = {}

    async def reserve(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        if worst_usd > self.left:
            return False
        self.left -= worst_usd
        self.reserved[name] = worst_usd
        return True

    def settle(self, name: str, usd: float, *, seen: bool = True) -> None:
        self.settled.setdefault(name, []).append(usd)


def settings(folder: Path, **wanted: Any) -> SkyPilotConfig:
    return SkyPilotConfig(
        **{"infra": "slurm/yard", "owners_folder": folder / "owners", "inputs_folder": folder / "inputs"} | wanted
    )


async def connected(
    provisioner: YardProvisioner,
    config: SkyPilotConfig,
    *,
    paper: bool = True,
    pause_s: float = PAUSE_S,
    clock: Callable[[], float] = time.time,
) -> SkyPilotBackend:
    tenancy = Tenancy(config.owners_folder, clock)
    backend = SkyPilotBackend(config, provisioner, tenancy, NoGuard(), NothingToShip() if paper else None, pause_s)
    await backend.begin()
    return backend


async def trial(backend: SkyPilotBackend, job: Job = JOB) -> tuple[str, Outcome]:
    """The cluster on which it ran, and what came of it."""
    async with await backend.open(job) as chamber:
        return chamber.name, await chamber.run(BUNDLE)
