"""The site that was chosen, by the name of its backend."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.choices import BACKENDS
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.outside import OutsideProvider
from orchestrator.wiring.plugins import make_by_name
from orchestrator.wiring.site import BackendContext, Progress, Provider, Site
from sandbox import Limits


def make_provider(settings: Settings, choice: SiteChoice) -> Provider:
    """Raises TaskError for a name that nothing has, and for what cannot be made."""
    found: Provider = make_by_name(BACKENDS, choice.backend, BackendContext(settings, choice), OutsideProvider)
    return found


@asynccontextmanager
async def open_site(settings: Settings, choice: SiteChoice, progress: Progress = lambda _: None) -> AsyncIterator[Site]:
    """Where the candidates run. All that it still holds is ended when left."""
    async with make_provider(settings, choice).open(progress) as site:
        yield site


def planned_site(settings: Settings, choice: SiteChoice) -> Site:
    """The site as far as it is known before it is opened: names, prices, terms. Raises like its provider."""
    return make_provider(settings, choice).planned()


def refuse_paid(settings: Settings, choice: SiteChoice, command: str) -> None:
    """For a command that has no account, no cap and no bill. Raises TaskError where its chambers would cost money."""
    site = planned_site(settings, choice)
    if site.judging is not None or site.priced_later or site.usd_per_second(Limits()) > 0:
        raise TaskError(
            f"{command} has no budget, and chambers of {choice.backend} cost money; choose one's own machine for it:"
            " BLASTDOOR_BACKEND=docker"
        )
