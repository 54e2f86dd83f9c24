"""Where chambers run, with all that a campaign needs to know of it, and what a backend has to be to lend one."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.wiring.choice import SiteChoice
from sandbox import FREE, Backend, Gpu, Input, Limits, Purse, Terms

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.conformance.subject import Subject

Progress = Callable[[str], None]


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
    `priced_later`: what a second costs is asked for in `ask_first`; before, it is only known where somebody set a cap.
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
    priced_later: bool = False

    @property
    def home(self) -> "Site":
        """Where trusted things run."""
        return self.judging or self


class About(NamedTuple):
    """What a provider tells of itself before it is examined: a table for people, whose rows say whether they are as
    they should be, and `record` under `key` for programs.

    `runtimes` are those that can be examined one by one; None where there is nothing to choose.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], bool]]
    key: str
    record: Mapping[str, Any]
    runtimes: tuple[str, ...] | None = None


class Reaped(NamedTuple):
    """What was ended of owners that are gone, and what the provider did not let us end."""

    ended: list[str]
    left: list[str]


class Provider(ABC):
    """A backend by its name, before anything of it is opened: made of a BackendContext.

    `planned` and `open` are what it has to be. All else follows from them, for every backend; one that knows better
    says so itself, and one that does not offer a thing raises Refused with the reason.
    """

    # By the name of an option that means nothing here: the line for a person who says it all the same.
    meaningless: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def admit(cls, choice: SiteChoice, *, anywhere: bool) -> None:
        """Raises TaskError for a choice that is not whole; `anywhere` where no place has to be named."""
        del choice, anywhere  # any will do

    @abstractmethod
    def planned(self) -> Site:
        """What is known of the site beforehand: name, prices, terms. Nothing is started or asked for."""

    @abstractmethod
    def open(self, progress: Progress) -> AbstractAsyncContextManager[Site]:
        """The site at work; all that it still holds is ended when it is left. Raises the sandbox's errors."""

    def alone(self, progress: Progress) -> AbstractAsyncContextManager[Site]:
        """The same where nothing is judged, so that no home is needed: for `exec`, `doctor` and `reap`."""
        return self.open(progress)

    async def about(self) -> About:
        """For `doctor`, before it rents anything."""
        from orchestrator.wiring.examining import about_site

        return about_site(self.planned())

    def subject(self) -> "Subject":
        """What the contract of all backends is run on, by `doctor`."""
        from orchestrator.wiring.examining import SiteSubject

        return SiteSubject(self)

    def target(self) -> "Target":
        """What `attack` attacks."""
        from orchestrator.wiring.examining import SiteTarget

        return SiteTarget(self)

    async def reap(self) -> Reaped:
        """End what crashed processes left there. Opening it may have done so already; then that is told, too."""
        async with self.alone(lambda _: None) as site:
            return Reaped(await site.backend.reap(), list(site.unreaped))
