"""Any backend under examination, by nothing but its site: what `doctor` and `attack` need where nobody lends more."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from orchestrator.task import ImageSpec
from orchestrator.wiring.parts import worst_of_chamber
from orchestrator.wiring.site import About, Provider, Site
from sandbox import Backend, Chamber, Job, Limits, Refused
from sandbox.attacks.attack import IMAGE, Arena
from sandbox.conformance.subject import Orphan
from sandbox.posture import FULL, Posture

_NOT_LENT = "the backend lends no subject of its own, so that its provider is not cut off, and no owner dies"
_LACKS = dict.fromkeys(("provider_gone", "orphan_ends_itself", "orphan_is_reaped"), _NOT_LENT)


def about_site(site: Site) -> About:
    limits = Limits(gpu=site.gpu)
    usd, worst = site.usd_per_second(limits), worst_of_chamber(site, limits)
    price = f"${usd:.8f} a second; ${worst:.4f} at worst for a trial of {limits.wall:g} s and its control job"
    if site.priced_later and not usd:
        price = "asked for when a trial is started"
    record = {"boundary": site.backend.capabilities.boundary, "price": price, "judge": f"on {site.home.name}"}
    return About(site.name, ("what", "as planned"), [(pair, True) for pair in record.items()], "account", record)


class _Opened:
    """The backend of an open site, which is left when it is closed. Jobs that name no image get the one baked there."""

    def __init__(self, site: Site, left: AsyncExitStack, images: Mapping[str, str]) -> None:
        self.capabilities = site.backend.capabilities
        self._backend = site.backend
        self._left = left
        self._images = images

    async def open(self, job: Job) -> Chamber:
        return await self._backend.open(job.model_copy(update={"image": self._images.get(job.image, job.image)}))

    async def reap(self) -> list[str]:
        return await self._backend.reap()

    async def close(self) -> None:
        await self._left.aclose()


async def _opened(provider: Provider, image: str | None) -> _Opened:
    """With this image, or with the one that chambers have where nobody names any."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(provider.alone(lambda _: None))
        baked = await site.bake(ImageSpec(base=image))
        given = image or str(Job.model_fields["image"].default)
        return _Opened(site, stack.pop_all(), {given: baked.name})
    raise AssertionError("a stack swallows nothing")


class SiteSubject:
    """`lacks` has the rows for which more is needed than a site."""

    lacks: Mapping[str, str] = _LACKS

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.name = provider.planned().name

    async def connect(self) -> Backend:
        return await _opened(self._provider, None)

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        raise NotImplementedError(_NOT_LENT)

    async def orphan(self) -> Orphan:
        raise NotImplementedError(_NOT_LENT)

    async def close(self) -> None:
        """No row left anything."""


class SiteTarget:
    """Rows that look at chambers from outside have nothing to look at here."""

    never: Mapping[str, str] = {}

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.runtime = provider.planned().name

    async def open(self, posture: Posture = FULL) -> Arena:
        if posture != FULL:
            raise Refused(f"--mutate switches flags of an engine off, and {self.runtime} has none; leave it out")
        return Arena(await _opened(self._provider, IMAGE), self.runtime)
