"""Where chambers run, with all that a campaign needs to know of it."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.wiring.choice import SiteChoice
from sandbox import FREE, Backend, Gpu, Input, Limits, Purse, Terms


def _nothing_stands(purse: Purse) -> None:
    """On one's own machine nothing is rented, so nobody has to pay for what stands."""
    del purse


async def _nothing_to_end() -> None:
    """Likewise."""


async def _nothing_to_ask(asked: Iterable[Limits]) -> None:
    """All is known."""
    del asked


async def _nothing_to_copy(realms: Iterable[tuple[str, str]]) -> None:
    """Chambers share no files there, or the provider keeps them apart."""
    del realms


@dataclass(frozen=True)
class BackendContext:
    """What a backend is made of: the user's settings, and what was chosen beside its name."""

    settings: Settings
    choice: SiteChoice


class Provider(Protocol):
    """A backend by its name, before anything of it is opened."""

    def planned(self) -> "Site":
        """What is known of the site beforehand: name, prices, terms. Nothing is started or asked for."""

    def open(self, progress: Callable[[str], None]) -> AbstractAsyncContextManager["Site"]:
        """The site at work; all that it still holds is ended when it is left. Raises the sandbox's errors."""


@dataclass(frozen=True)
class Site:
    """`ceiling` says how many chambers of such limits fit at once; `name` is part of every fingerprint.

    `spare_s` is what a chamber can take beyond its job's own limits, `terms` what the provider charges beyond that.
    `judging` is where judge, gold and agents stay when the candidates are sent away: on one's own machine. `paid_by`
    is told who pays for what stands longer than one chamber; until then nothing of that kind is made. `stand_down` ends
    all of that; each is settled when its end is confirmed. `gpu` is what a candidate's chamber gets of it, where it is
    None what the task says, unless it is `without_gpu`. `ask_first` is
    told what will be opened, before anything is on record: prices and GPUs that only the provider knows of.
    `keep_apart` is told which images are needed for which realms, so that copies are there in time. `place` is
    from where what is rented can be ended, `unreaped` what the provider did not let us end of those who died there.
    """

    name: str
    backend: Backend
    bake: Callable[[ImageSpec], Awaitable[Image]]
    add_input: Callable[[str, Path], Input]
    usd_per_second: Callable[[Limits], float]
    ceiling: Callable[[Limits], int]
    spare_s: float = 100.0
    terms: Terms = FREE
    judging: "Site | None" = None
    paid_by: Callable[[Purse], None] = _nothing_stands
    stand_down: Callable[[], Awaitable[None]] = _nothing_to_end
    gpu: Gpu | None = None
    without_gpu: bool = False
    ask_first: Callable[[Iterable[Limits]], Awaitable[None]] = _nothing_to_ask
    keep_apart: Callable[[Iterable[tuple[str, str]]], Awaitable[None]] = _nothing_to_copy
    place: str = ""
    unreaped: tuple[str, ...] = ()

    @property
    def home(self) -> "Site":
        """Where trusted things run."""
        return self.judging or self
