"""One's own machine without a daemon: the OCI runtime is driven directly."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from orchestrator.wiring.backends.docker import Unopened, docker_config, local_site
from orchestrator.wiring.site import About, BackendContext, Progress, Provider, Reaped, Site
from sandbox import Rates, RuncConfig
from sandbox.backends.local import capabilities_of
from sandbox.posture import FULL

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.conformance.subject import Subject

_READY_FOR_ATTACKS = 2


class Runc(Provider):
    """Candidates, judge and agents share it."""

    runtime: ClassVar = "runc"
    meaningless: ClassVar = {
        "infra": "--infra says where SkyPilot rents and means nothing without a daemon; use it with --backend skypilot",
        "standing": "--standing is for what is rented; on one's own machine the setting warm keeps chambers ready",
        "runtime": "--runtime is for an engine; without one the backend names it: --backend runc, crun or runsc",
    }

    def __init__(self, context: BackendContext) -> None:
        self._settings, self._choice = context.settings, context.choice

    def config(self, **changed: Any) -> RuncConfig:
        engine = docker_config(self._settings)
        wanted: dict[str, Any] = {
            "runtime": self.runtime,
            "warm": engine.warm,
            "disk_read": engine.disk_read,
            "rates": Rates(cpu=self._settings.usd_per_hour / 3600),
            "image_host": engine.host,
        }
        return RuncConfig(**wanted | changed)

    def planned(self) -> Site:
        unopened = Unopened(capabilities_of(self.runtime, self.runtime, FULL, gpu=self.runtime != "runsc"))
        return self._with_gpu(local_site(self.runtime, self.config(), unopened, self._settings.image))

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        config = self.config()
        backend = await config.connect()
        try:
            yield self._with_gpu(local_site(self.runtime, config, backend, self._settings.image, progress))
        finally:
            await backend.close()

    def _with_gpu(self, site: Site) -> Site:
        return replace(site, gpu=self._choice.gpu, without_gpu=self._choice.without_gpu)

    async def about(self) -> About:
        from sandbox.runtime_report import examine_runtime

        parts = examine_runtime(self.config())
        rows = [((part.name, part.version, part.minimum, part.remark), part.good) for part in parts]
        record = {part.name: {"version": part.version, "good": part.good, "remark": part.remark} for part in parts}
        return About("Runtime", ("part", "version", "minimum", "remark"), rows, "runtime", record)

    def subject(self) -> "Subject":
        from sandbox.conformance.runc import RuncSubject

        return RuncSubject(self.config())

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


class Crun(Runc):
    runtime: ClassVar = "crun"


class Runsc(Runc):
    runtime: ClassVar = "runsc"
