"""The one way from here into a chamber. It decides whose fault an ending was, and measures what was spent."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import structlog

from orchestrator.budget import micro_dollars, milliseconds
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Spent
from sandbox import (
    Backend,
    Bundle,
    Chamber,
    Job,
    Limits,
    Listener,
    Lost,
    NotDelivered,
    Outcome,
    Refused,
    Talk,
    Unavailable,
)

_log = structlog.get_logger()


class NotStarted(Exception):
    """No hostile byte was delivered, so the ending is free: nobody could have farmed it."""

    def __init__(self, ending: Ending, why: str) -> None:
        super().__init__(why)
        self.ending = ending


class BrokeOff(Exception):
    """The provider failed after delivery. It is proven to be the provider's fault only if a control job fails too."""

    def __init__(self, why: str, *, proven: bool, spent: Spent) -> None:
        super().__init__(why)
        self.proven = proven
        self.spent = spent


class TooLarge(Exception):
    """The bundle breaks a limit of its chamber; nothing was run."""


class Overseer(Protocol):
    """Whoever may have a chamber stopped while it runs."""

    def opened(self, facts: Mapping[str, str]) -> None:
        """What the chamber said of itself, before any hostile byte arrived."""

    async def enough(self) -> None:
        """Returns once it is to be stopped, and not before."""


@dataclass(frozen=True)
class Ran:
    outcome: Outcome
    spent: Spent


@dataclass(frozen=True)
class Door:
    """Opens chambers on one backend. `control` is a job that must pass wherever the backend is well.

    `spare_s` is what a chamber can take beyond its job's limits: upload, collection and the kill have their own.
    """

    backend: Backend
    control: Job
    usd_per_second: Callable[[Limits], float]
    provision_s: float
    spare_s: float

    async def run(
        self,
        job: Job,
        bundle: Bundle,
        listener: Listener | None = None,
        overseer: Overseer | None = None,
        talk: Talk | None = None,
    ) -> Ran:
        """One chamber's life. Raises NotStarted, BrokeOff, TooLarge, and Refused for a job that can not run at all.

        `talk` is for a job in relay mode: it must raise nothing of these itself.
        """
        chamber = await self._open(job)
        started = time.monotonic()
        outcome: Outcome | None = None
        try:
            async with chamber, _overseen(chamber, overseer):
                outcome = await _run(chamber, bundle, listener, talk)
        except NotDelivered as error:
            raise NotStarted(Ending.INFRASTRUCTURE, str(error)) from error
        except (Unavailable, Lost) as error:
            if outcome is None:
                spent = self.cost(job, time.monotonic() - started)
                raise BrokeOff(str(error), proven=not await self._is_well(), spent=spent) from error
            # The outcome is known; what is left of the chamber is found by its label and reaped.
            _log.warning("chamber not removed", error=str(error))
        usage = outcome.usage
        return Ran(outcome, Spent(microdollars=micro_dollars(usage.usd), milliseconds=milliseconds(usage.held_s)))

    def worst(self, job: Job) -> Spent:
        """The most that one run of the job can cost."""
        return self.worst_within(job.limits, builds=bool(job.build))

    def worst_within(self, limits: Limits, *, builds: bool) -> Spent:
        return self._cost(limits, longest(limits, builds=builds, spare_s=self.spare_s))

    def cost(self, job: Job, seconds: float) -> Spent:
        """What a chamber of this job costs in so many seconds."""
        return self._cost(job.limits, seconds)

    def _cost(self, limits: Limits, seconds: float) -> Spent:
        usd = self.usd_per_second(limits) * seconds
        return Spent(microdollars=micro_dollars(usd), milliseconds=milliseconds(seconds))

    async def _open(self, job: Job) -> Chamber:
        try:
            async with asyncio.timeout(self.provision_s):
                return await self.backend.open(job)
        except TimeoutError:
            raise NotStarted(Ending.STALLED, f"no chamber within {self.provision_s:g} s") from None
        except (Unavailable, Lost) as error:
            raise NotStarted(Ending.INFRASTRUCTURE, str(error)) from error

    async def _is_well(self) -> bool:
        """Whether a job that does nothing gets through."""
        try:
            async with asyncio.timeout(self.provision_s), await self.backend.open(self.control) as chamber:
                return (await chamber.run(Bundle({}))).exit_code == 0
        except (Unavailable, Lost, TimeoutError):
            return False


def longest(limits: Limits, *, builds: bool, spare_s: float) -> float:
    """The most seconds that a chamber of such limits can last."""
    return limits.wall + limits.grace + (limits.build if builds else 0.0) + spare_s


@asynccontextmanager
async def _overseen(chamber: Chamber, overseer: Overseer | None) -> AsyncIterator[None]:
    """Where the order to stop does not get through, the job's own limit ends it."""
    if overseer is None:
        yield
        return

    async def oversee() -> None:
        await overseer.enough()
        try:
            await chamber.stop()
        except (Unavailable, Lost) as error:
            _log.warning("chamber not told to stop", error=str(error))

    overseer.opened(chamber.facts)
    watching = asyncio.create_task(oversee())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


async def _run(chamber: Chamber, bundle: Bundle, listener: Listener | None, talk: Talk | None) -> Outcome:
    try:
        return await chamber.run(bundle, listener=listener, talk=talk)
    except Refused as error:
        raise TooLarge(str(error)) from error
