"""The site that was chosen, open: one's own engine, or a rented place for candidates with the engine as its home."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Protocol, cast

from orchestrator.choices import BACKENDS
from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.engine import docker_config, docker_site, site_of_engine, spare_of
from orchestrator.wiring.outside import OutsideProvider
from orchestrator.wiring.plugins import make_by_name
from orchestrator.wiring.rates import modal_rates
from orchestrator.wiring.site import BackendContext, Provider, Site
from sandbox import (
    Backend,
    BackendConfig,
    Capabilities,
    Chamber,
    DockerConfig,
    Job,
    Limits,
    ModalConfig,
    Purse,
    Refused,
    SkyPilotConfig,
)
from sandbox import ImageSpec as BakeSpec

# How many candidates at a time, where nobody said: a wide bill should be somebody's decision.
_WIDTH_ON_MODAL = 10
_PACKAGES = {"modal": "modal", "skypilot": "sky"}
Progress = Callable[[str], None]
# What an engine can do that nobody has asked yet.
_ANY = Capabilities("an engine, not opened", relay=True, live_log=True, stop=True)


class _Rented(Backend, Protocol):
    """A backend that keeps something standing once somebody pays for it. `unreaped` is as `connect` found it."""

    purse: Purse | None
    unreaped: tuple[str, ...]

    @property
    def place(self) -> str: ...

    async def stand_down(self) -> None: ...


class _Quoting(Backend, Protocol):
    """A backend whose prices must be asked for."""

    async def usd_per_second(self, limits: Limits) -> float: ...


def backend_config(settings: Settings, choice: SiteChoice) -> BackendConfig:
    """Raises Refused when the backend's package is not installed, it has no such GPU, or the place is no boundary."""
    if choice.backend == "docker":
        return docker_config(settings, runtime=choice.runtime)
    if choice.backend not in _PACKAGES:
        whose = BACKENDS.find(choice.backend)
        raise Refused(f'this command cannot open the backend "{choice.backend}"{whose}; use `run`, or another backend')
    if find_spec(_PACKAGES[choice.backend]) is None:
        raise Refused(
            f"--backend {choice.backend} needs a package more; install blastdoor with its extra {choice.backend} "
            "(docs/backends.md)"
        )
    if choice.backend == "modal":
        config = ModalConfig(
            app=settings.modal_app,
            environment=settings.modal_environment,
            warm=choice.standing,
            warm_idle=settings.modal_idle,
            rates=modal_rates(settings.prices),
        )
        config.admit(choice.gpu)
        return config
    # Whoever wants gVisor at home wants it there too; a machine without it is refused.
    rented = SkyPilotConfig(
        infra=choice.infra or "",
        warm=choice.standing,
        lifetime=settings.skypilot_lifetime,
        autodown=settings.skypilot_autodown,
        usd_per_hour=settings.usd_per_hour_most,
        runtime=choice.runtime or settings.runtime,
        image_host=docker_config(settings).host,
    )
    rented.admit(choice.gpu)
    return rented


def _quoted(site: Site, backend: _Quoting) -> Site:
    """What SkyPilot rents costs what is asked at the place and time: it is asked for before anything is reserved."""
    prices: dict[Limits, float] = {}

    async def quote(asked: Iterable[Limits]) -> None:
        for limits in asked:
            prices[limits] = await backend.usd_per_second(limits)

    def price(limits: Limits) -> float:
        return prices.get(limits, max(prices.values(), default=0.0))

    return replace(site, ask_first=quote, usd_per_second=price)


class _Unopened:
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


class OwnEngine:
    """One's own Docker engine."""

    def __init__(self, context: BackendContext) -> None:
        self._settings, self._choice = context.settings, context.choice

    def planned(self) -> Site:
        config = docker_config(self._settings, runtime=self._choice.runtime)
        return self._with_gpu(site_of_engine(config, _Unopened(_ANY), self._settings.image))

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        config = docker_config(self._settings, runtime=self._choice.runtime)
        async with docker_site(config, self._settings.image, progress) as site:
            yield self._with_gpu(site)

    def _with_gpu(self, site: Site) -> Site:
        return replace(site, gpu=self._choice.gpu, without_gpu=self._choice.without_gpu)


class Rented:
    """A rented place for candidates, with one's own engine as its home."""

    def __init__(self, context: BackendContext) -> None:
        self._settings, self._choice = context.settings, context.choice

    def planned(self) -> Site:
        settings, choice = self._settings, self._choice
        config = backend_config(settings, choice)
        if isinstance(config, DockerConfig):
            raise AssertionError("one's own engine is not rented")
        home = site_of_engine(docker_config(settings), _Unopened(_ANY), settings.image)
        return _rented_site(config, choice, settings, _Unopened(config.admit(choice.gpu)), home, lambda _: None)

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        settings, choice = self._settings, self._choice
        config = backend_config(settings, choice)
        if isinstance(config, DockerConfig):
            raise AssertionError("one's own engine is not rented")
        if isinstance(config, SkyPilotConfig):
            config.refuse_without_programs()
        async with docker_site(docker_config(settings), settings.image, progress) as home:
            backend = cast(_Rented, await config.connect())
            try:
                site = _rented_site(config, choice, settings, backend, home, progress)
                yield _quoted(site, cast(_Quoting, backend)) if isinstance(config, SkyPilotConfig) else site
            finally:
                await backend.close()


def _provider(settings: Settings, choice: SiteChoice) -> Provider:
    """Raises TaskError for a name that nothing has, and for what cannot be made."""
    found: Provider = make_by_name(BACKENDS, choice.backend, BackendContext(settings, choice), OutsideProvider)
    return found


@asynccontextmanager
async def open_site(settings: Settings, choice: SiteChoice, progress: Progress = lambda _: None) -> AsyncIterator[Site]:
    """Where the candidates run, by the name of its backend. All that it still holds is ended when left."""
    async with _provider(settings, choice).open(progress) as site:
        yield site


def planned_site(settings: Settings, choice: SiteChoice) -> Site:
    """The site as far as it is known before it is opened: names, prices, terms. Raises Refused like backend_config."""
    return _provider(settings, choice).planned()


def site_name(settings: Settings, choice: SiteChoice) -> str:
    """What fingerprints have of it: two sites of one name may be compared."""
    if choice.backend == "modal":
        kind = modal_rates(settings.prices).kind(choice.gpu.kind) or choice.gpu.kind if choice.gpu else None
        return f"modal/{kind}" if kind else "modal"
    if choice.backend == "skypilot":
        return f"skypilot/{choice.infra}/{'warm' if choice.standing else 'fresh'}"
    if choice.backend != "docker":
        return planned_site(settings, choice).name
    return f"docker/{choice.runtime or settings.runtime}"


def _rented_site(
    config: ModalConfig | SkyPilotConfig,
    choice: SiteChoice,
    settings: Settings,
    backend: _Rented,
    home: Site,
    progress: Progress,
) -> Site:
    async def bake(spec: ImageSpec) -> Image:
        wanted = BakeSpec(base=spec.base or settings.image, pip=spec.pip, apt=spec.apt, run=spec.run)
        baked = await config.bake(wanted, progress)
        return Image(baked.name, baked.digest)

    def paid_by(purse: Purse) -> None:
        backend.purse = purse

    return Site(
        name=site_name(settings, choice),
        backend=backend,
        bake=bake,
        # Both read the same store on this machine; what leaves it from there, the backend sends.
        add_input=home.add_input,
        usd_per_second=price_of(config, settings.usd_per_hour_most),
        ceiling=lambda _: width_of(config),
        spare_s=spare_of(config),
        terms=config.terms,
        judging=home,
        paid_by=paid_by,
        stand_down=backend.stand_down,
        gpu=choice.gpu,
        without_gpu=choice.without_gpu,
        place=backend.place,
        unreaped=backend.unreaped,
    )


def price_of(config: BackendConfig, usd_per_hour_most: float | None) -> Callable[[Limits], float]:
    """Dollars of a second at worst, as far as data tell. It raises Refused for what costs more than was allowed.

    What SkyPilot rents has a price only once it is asked; until then that is the ceiling.
    """
    if isinstance(config, SkyPilotConfig):
        worst = (config.usd_per_hour or 0.0) / 3600
        return lambda _: worst
    rates = config.rates

    def price(limits: Limits) -> float:
        if isinstance(config, ModalConfig):
            config.admit(limits.gpu)
        usd = rates.per_second(limits)
        if isinstance(config, ModalConfig) and usd_per_hour_most is not None and usd * 3600 > usd_per_hour_most:
            raise Refused(
                f"a chamber of these limits costs ${usd * 3600:.2f} an hour on Modal, and usd_per_hour_most is "
                f"${usd_per_hour_most:g}; ask for less, or raise it"
            )
        return usd

    return price


def width_of(config: ModalConfig | SkyPilotConfig) -> int:
    return _WIDTH_ON_MODAL if isinstance(config, ModalConfig) else max(1, config.warm)
