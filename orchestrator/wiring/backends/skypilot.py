"""Machines that SkyPilot rents."""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.task import TaskError
from orchestrator.wiring.backends.docker import docker_config
from orchestrator.wiring.backends.rented import Rented
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.site import Progress, Reaped, Site
from sandbox import Limits, Refused, SkyPilotConfig

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.backends.skypilot.backend import SkyPilotBackend
    from sandbox.conformance.subject import Subject

_INFRA = re.compile(r"[a-z0-9][A-Za-z0-9._/*-]{0,127}")


class SkyPilot(Rented[SkyPilotConfig]):
    extra = "skypilot"
    package = "sky"

    @classmethod
    def admit(cls, choice: SiteChoice, *, anywhere: bool) -> None:
        if choice.infra is None and not anywhere:
            example = "like aws, gcp/us-central1 or slurm/cluster"
            raise TaskError(f"--backend skypilot needs --infra, SkyPilot's word for where, {example}")
        if choice.infra is not None and not _INFRA.fullmatch(choice.infra):
            raise TaskError(f"infra {choice.infra!r} is not SkyPilot's word for a place; write it like gcp/us-central1")

    def make_config(self) -> SkyPilotConfig:
        # A user who wants gVisor at home wants it there too; a machine without it is refused.
        return SkyPilotConfig(
            infra=self.choice.infra or "",
            warm=self.choice.standing,
            lifetime=self.settings.skypilot_lifetime,
            autodown=self.settings.skypilot_autodown,
            usd_per_hour=self.settings.usd_per_hour_most,
            runtime=self.choice.runtime or self.settings.runtime,
            image_host=docker_config(self.settings).host,
        )

    def name(self) -> str:
        return f"skypilot/{self.choice.infra}/{'warm' if self.choice.standing else 'fresh'}"

    def price(self, config: SkyPilotConfig) -> Callable[[Limits], float]:
        """What is rented has a price only once it is asked; until then that is the ceiling."""
        worst = (config.usd_per_hour or 0.0) / 3600
        return lambda _: worst

    def width(self, config: SkyPilotConfig) -> int:
        return max(1, config.warm)

    def account(self, config: SkyPilotConfig, limits: Limits, usd: float, at_worst: str) -> dict[str, str]:
        del limits  # what a machine costs is the place's own affair
        most = f"at most ${usd * 3600:g} an hour (usd_per_hour_most); {at_worst}"
        price = most if usd else "no ceiling (usd_per_hour_most)"
        return {"account": "that of SkyPilot's own set-up", "where": config.infra, "price": price}

    def planned(self) -> Site:
        return replace(super().planned(), priced_later=True)

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        self.config().refuse_without_programs()  # before the home is opened
        async with super().open(progress) as site:
            yield site

    @asynccontextmanager
    async def connected(self, config: SkyPilotConfig, home: Site, progress: Progress) -> AsyncIterator[Site]:
        backend = await config.connect()
        try:
            yield _quoted(self.site(config, backend, home, progress), backend)
        finally:
            await backend.close()

    def subject(self) -> "Subject":
        from sandbox.conformance.skypilot import SkyPilotSubject

        config = self.config()
        return SkyPilotSubject(config.infra, config.connect)

    def target(self) -> "Target":
        raise Refused("`attack` is not offered on skypilot: each row would rent a machine; use `doctor` there")

    async def reap(self) -> Reaped:
        """SkyPilot lists what was rented at all places together, so none has to be named."""
        return Reaped(*await SkyPilotConfig.reap_everywhere())


def _quoted(site: Site, backend: "SkyPilotBackend") -> Site:
    """It costs what is asked at the place and time: that is asked for before anything is reserved."""
    prices: dict[Limits, float] = {}

    async def quote(asked: Iterable[Limits]) -> None:
        for limits in asked:
            prices[limits] = await backend.usd_per_second(limits)

    def price(limits: Limits) -> float:
        return prices.get(limits, max(prices.values(), default=0.0))

    return replace(site, ask_first=quote, usd_per_second=price)
