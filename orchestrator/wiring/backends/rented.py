"""What rented places have in common: candidates are sent there, and one's own engine is the home of the rest."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import ClassVar, Generic, Protocol, TypeVar

from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from orchestrator.wiring.backends.docker import (
    ANY,
    Timed,
    Unopened,
    docker_config,
    docker_site,
    site_of_engine,
    spare_of,
)
from orchestrator.wiring.parts import worst_of_chamber
from orchestrator.wiring.site import About, BackendContext, Progress, Provider, Site
from sandbox import Backend, BakedImage, Capabilities, Gpu, Limits, Purse, Refused, Terms
from sandbox import ImageSpec as BakeSpec


class RentedBackend(Backend, Protocol):
    """A backend that keeps something standing once somebody pays for it. `unreaped` is as `connect` found it."""

    purse: Purse | None
    unreaped: tuple[str, ...]

    @property
    def place(self) -> str: ...

    async def stand_down(self) -> None: ...


class RentedConfig(Timed, Protocol):
    """The settings of such a backend."""

    @property
    def terms(self) -> Terms: ...

    def admit(self, gpu: Gpu | None) -> Capabilities: ...

    async def connect(self) -> RentedBackend: ...

    async def bake(self, spec: BakeSpec, progress: Progress) -> BakedImage: ...


C = TypeVar("C", bound=RentedConfig)


class Rented(Provider, Generic[C]):
    """`extra` is that of our own package which brings the provider's, `package`."""

    extra: ClassVar[str]
    package: ClassVar[str]

    def __init__(self, context: BackendContext) -> None:
        self.settings, self.choice = context.settings, context.choice

    def config(self) -> C:
        """Raises Refused when the provider's package is missing, it has no such GPU, or the place is no boundary."""
        if find_spec(self.package) is None:
            raise Refused(
                f"--backend {self.extra} needs a package more; install blastdoor with its extra {self.extra} "
                "(docs/backends.md)"
            )
        config = self.make_config()
        config.admit(self.choice.gpu)
        return config

    @abstractmethod
    def make_config(self) -> C: ...

    @abstractmethod
    def name(self) -> str:
        """What fingerprints have of it: two sites of one name may be compared."""

    @abstractmethod
    def price(self, config: C) -> Callable[[Limits], float]:
        """Dollars of a second at worst, as far as data tell. It raises Refused for what costs more than was allowed."""

    @abstractmethod
    def width(self, config: C) -> int:
        """How many candidates at a time, where nobody said."""

    @abstractmethod
    def account(self, config: C, limits: Limits, usd: float, at_worst: str) -> dict[str, str]:
        """Who pays, and what for; `usd` is the price of a second as far as it is known."""

    def planned(self) -> Site:
        config = self.config()
        return self.site(config, Unopened(config.admit(self.choice.gpu)), self._planned_home(), lambda _: None)

    @asynccontextmanager
    async def open(self, progress: Progress) -> AsyncIterator[Site]:
        config = self.config()
        async with (
            docker_site(docker_config(self.settings), self.settings.image, progress) as home,
            self.connected(config, home, progress) as site,
        ):
            yield site

    @asynccontextmanager
    async def alone(self, progress: Progress) -> AsyncIterator[Site]:
        async with self.connected(self.config(), self._planned_home(), progress) as site:
            yield site

    async def about(self) -> About:
        config, site, limits = self.config(), self.planned(), Limits(gpu=self.choice.gpu)
        worst = f"${worst_of_chamber(site, limits):.4f} at worst for a trial of {limits.wall:g} s and its control job"
        record = self.account(config, limits, site.usd_per_second(limits), worst)
        rows = [(pair, True) for pair in record.items()]
        return About(site.name, ("who pays", "and for what"), rows, "account", record)

    @asynccontextmanager
    async def connected(self, config: C, home: Site, progress: Progress) -> AsyncIterator[Site]:
        backend = await config.connect()
        try:
            yield self.site(config, backend, home, progress)
        finally:
            await backend.close()

    def _planned_home(self) -> Site:
        return site_of_engine(docker_config(self.settings), Unopened(ANY), self.settings.image)

    def site(self, config: C, backend: RentedBackend, home: Site, progress: Progress) -> Site:
        async def bake(spec: ImageSpec) -> Image:
            base = spec.base or self.settings.image
            baked = await config.bake(BakeSpec(base=base, pip=spec.pip, apt=spec.apt, run=spec.run), progress)
            return Image(baked.name, baked.digest)

        def paid_by(purse: Purse) -> None:
            backend.purse = purse

        return Site(
            name=self.name(),
            backend=backend,
            bake=bake,
            # Both read the same store on this machine; what leaves it from there, the backend sends.
            add_input=home.add_input,
            usd_per_second=self.price(config),
            ceiling=lambda _: self.width(config),
            spare_s=spare_of(config),
            terms=config.terms,
            judging=home,
            paid_by=paid_by,
            stand_down=backend.stand_down,
            gpu=self.choice.gpu,
            without_gpu=self.choice.without_gpu,
            place=backend.place,
            unreaped=backend.unreaped,
        )
