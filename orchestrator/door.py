"""The one way from here into a chamber. It decides whose fault an ending was, and says what was spent.

What is rented is paid for from its creation to its confirmed end, whatever came of it. Where the end could not be
confirmed, it counts as the worst case: the provider's own lifetime is what ends it then.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from orchestrator.awake import Awake
from orchestrator.budget import micro_dollars, milliseconds
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Doubt, Spent
from orchestrator.tariff import Tariff
from orchestrator.turns import Turns
from sandbox import (
    Answering,
    Backend,
    Bundle,
    Chamber,
    Denied,
    Job,
    Limits,
    Listener,
    Lost,
    Mode,
    NotDelivered,
    Outcome,
    Recalling,
    Refused,
    SandboxError,
    Silent,
    TakenAway,
    Talk,
    Unavailable,
)
from sandbox import Ending as ChamberEnding

_log = structlog.get_logger()

# Endings by a clock of ours, or by our own hand: those that come of not having been there.
_OF_TIME = {ChamberEnding.TIMED_OUT, ChamberEnding.BUILD_TIMED_OUT, ChamberEnding.STOPPED, ChamberEnding.KILLED}
_AT_WORST = "its end is not confirmed, so it is booked at its worst case"


class NotStarted(Exception):
    """No hostile byte was delivered, so the ending is free: nobody could have farmed it.

    `denied`: the provider lets nobody of ours in, so there is no use in trying again before a person has acted.
    `provider` is the one that failed.
    """

    def __init__(
        self, ending: Ending, why: str, spent: Spent | None = None, *, provider: str, denied: bool = False
    ) -> None:
        super().__init__(why)
        self.ending = ending
        self.spent = spent or Spent()
        self.provider = provider
        self.denied = denied


class BrokeOff(Exception):
    """The provider failed after delivery. It is proven to be the provider's fault only if a control job fails too, if
    the provider says itself that it took the chamber away, or if it answered nobody meanwhile (`told`). `slept`: we
    were not there ourselves meanwhile, and then it is nobody's fault.
    """

    def __init__(
        self,
        why: str,
        *,
        proven: bool,
        spent: Spent,
        provider: str,
        denied: bool = False,
        told: bool = False,
        slept: bool = False,
    ) -> None:
        super().__init__(why)
        self.proven = proven
        self.spent = spent
        self.provider = provider
        self.denied = denied
        self.told = told
        self.slept = slept

    @property
    def ending(self) -> Ending:
        return Ending.INTERRUPTED if self.slept else Ending.INFRASTRUCTURE


class TooLarge(Exception):
    """The bundle breaks a limit of its chamber; nothing was run."""

    def __init__(self, why: str, spent: Spent | None = None) -> None:
        super().__init__(why)
        self.spent = spent or Spent()


class Overseer(Protocol):
    """May have a chamber stopped while it runs."""

    def opened(self, facts: Mapping[str, str]) -> None:
        """What the chamber said of itself, before any hostile byte arrived."""

    async def enough(self) -> None:
        """Returns once it is to be stopped, and not before."""


@dataclass(frozen=True)
class Ran:
    outcome: Outcome
    spent: Spent


Durable = Callable[[], Awaitable[None]]


async def nothing_is_recorded() -> None:
    """Without a campaign there is no record to wait for."""


@dataclass(frozen=True)
class Door:
    """Opens chambers on one backend, `name`. `control` is a job that must pass wherever the backend is well.

    `unsure` has each chamber that we ended ourselves and whose end is not confirmed, with the attempt that ran in it
    where that is known, else a line. `turns` are taken by
    candidates that share this machine; a meeting in relay mode takes one for both sides. `awake` tells whether we were
    there while a chamber ran. `durable` returns when what was recorded is on disk: no chamber is opened before.
    """

    backend: Backend
    control: Job
    tariff: Tariff
    unsure: dict[str, str] = field(default_factory=dict)
    turns: Turns = field(default_factory=Turns)
    name: str = "engine"
    awake: Awake = field(default_factory=Awake)
    durable: Durable = nothing_is_recorded

    async def run(
        self,
        job: Job,
        bundle: Bundle,
        listener: Listener | None = None,
        overseer: Overseer | None = None,
        talk: Talk | None = None,
    ) -> Ran:
        """One chamber's life. Raises NotStarted, BrokeOff, TooLarge, and Refused for a job that cannot run at all.

        `talk` is for a job in relay mode: it must raise nothing of these itself.
        """
        await self.durable()
        async with self._own_turn(job):
            return await self._run(job, bundle, listener, overseer, talk)

    async def run_on_record(
        self,
        job: Job,
        bundle: Bundle,
        listener: Listener | None = None,
        overseer: Overseer | None = None,
        talk: Talk | None = None,
    ) -> Ran:
        """The same for a chamber whose intent is on disk: inside of another's life nobody waits for the ledger, since
        that one's clock runs meanwhile.
        """
        async with self._own_turn(job):
            return await self._run(job, bundle, listener, overseer, talk)

    @property
    def is_taken(self) -> bool:
        """Whether a candidate that comes now has to wait for one that is, or wants to be, alone on this machine."""
        return not self.tariff.is_rented and self.turns.is_taken

    @property
    def registry(self) -> str:
        """The provider's list that can tell later of what we did not see end; empty where there is none."""
        return self.backend.registry if isinstance(self.backend, Recalling) else ""

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        """Seconds of those that are over, by that list. Raises SandboxError."""
        return await self.backend.lifetimes(given_up) if isinstance(self.backend, Recalling) else {}

    def turn(self, job: Job) -> AbstractAsyncContextManager[None]:
        """On rented machines nobody is beside anybody."""
        return nullcontext() if self.tariff.is_rented else self.turns.take(job.realm)

    def _own_turn(self, job: Job) -> AbstractAsyncContextManager[None]:
        """A meeting's was taken by those who meet."""
        return nullcontext() if job.mode is Mode.RELAY else self.turn(job)

    async def _run(
        self, job: Job, bundle: Bundle, listener: Listener | None, overseer: Overseer | None, talk: Talk | None
    ) -> Ran:
        slept = self.awake.slept
        self._disown()
        try:
            chamber = await self._open(job)
        except Refused as error:
            self._doubt(job, error)
            raise
        outcome: Outcome | None = None
        try:
            async with chamber, _overseen(chamber, overseer) if overseer else nullcontext():
                outcome = await chamber.run(bundle, listener=listener, talk=talk)
        except Refused as error:
            raise TooLarge(str(error), self._spent(job, chamber)) from error
        except NotDelivered as error:
            why, spent = self._told(error, chamber), self._spent(job, chamber)
            raise NotStarted(Ending.INFRASTRUCTURE, why, spent, provider=self.name) from error
        except (Unavailable, Lost) as error:
            if outcome is None:
                if late := self._overslept(slept):
                    raise self._slept_through(late, self._spent(job, chamber)) from error
                raise await self._broke_off(job, chamber, error) from error
            # The outcome is known; what is left of the chamber is found by its label and reaped.
            _log.warning("chamber not removed", error=str(error))
        except BaseException:
            self._doubt(job, chamber)
            raise
        spent = self._spent_on_outcome(job, chamber, outcome)
        if outcome.ending in _OF_TIME and (late := self._overslept(slept)):
            raise self._slept_through(late, spent)
        return Ran(outcome, spent)

    def _spent_on_outcome(self, job: Job, chamber: Chamber, outcome: Outcome) -> Spent:
        if not chamber.bill.final:
            _log.warning("end of a chamber not confirmed", booked="the worst case")
            return self._at_worst(job, chamber.bill.unseen)
        return self._billed(job, outcome.usage.usd, outcome.usage.held_s, chamber.bill.unseen)

    def _overslept(self, before: float) -> float:
        """How long we were not there since."""
        return self.awake.slept - before

    def _slept_through(self, late: float, spent: Spent) -> BrokeOff:
        why = f"the orchestrator stood still for {late:.0f} s while it ran"
        return BrokeOff(why, proven=True, spent=spent, provider=self.name, slept=True)

    async def answers(self) -> bool:
        """Whether the provider is there and serves: where it costs nothing, a job that does nothing is run, too, so
        that a candidate that takes its engine down each time is told from an engine that is down.
        """
        return await self.replies() and (self.tariff.is_rented or (await self._control()).passed)

    async def replies(self) -> bool:
        """Whether the provider is there, by one call that creates nothing and disturbs nobody."""
        try:
            await (self.backend.answers() if isinstance(self.backend, Answering) else self.backend.reap())
        except SandboxError as error:
            _log.debug("provider does not answer", provider=self.name, error=str(error))
            return False
        return True

    def worst_within(self, limits: Limits, *, builds: bool) -> Spent:
        """What is to be reserved for one run."""
        return self.tariff.worst_within(limits, builds=builds)

    def at_most(self, limits: Limits, seconds: float, *, builds: bool = False, attempt: str = "") -> Spent:
        """What a chamber cost at most that is gone, so many seconds after it was intended.

        It is the worst case while some chamber, which may be this one, is not known to have ended. With the `attempt`
        whose only such chamber it is, its provider can tell more later.
        """
        if self.unsure or seconds < 0:  # a clock that was set back tells nothing
            mine = [chamber for chamber, owner in self.unsure.items() if attempt and owner == attempt]
            worst = self.tariff.whole_life(limits, builds=builds)
            return self._in_doubt(limits, worst, mine[0] if len(mine) == 1 else "")
        return self._passed(limits, seconds, builds=builds)

    def _passed(self, limits: Limits, seconds: float, *, builds: bool) -> Spent:
        """The price of so many seconds."""
        return _at_most(self.tariff.whole_life(limits, builds=builds), self.tariff.cost(limits, seconds))

    def _billed(self, job: Job, usd: float, seconds: float, unseen: str = "") -> Spent:
        """Of a chamber that is over, by the time at which we saw its end, or by the end that it has by itself."""
        spent = Spent(microdollars=micro_dollars(usd), milliseconds=milliseconds(seconds))
        return self._in_doubt(job.limits, _at_most(self._whole_life(job), spent), unseen)

    def _at_worst(self, job: Job, unseen: str) -> Spent:
        return self._in_doubt(job.limits, self._whole_life(job), unseen)

    def _in_doubt(self, limits: Limits, spent: Spent, unseen: str) -> Spent:
        """With the name of what nobody saw the end of, where its provider can tell later how long it lived."""
        if not unseen or not self.registry:
            return spent
        doubt = Doubt(
            chamber=unseen,
            registry=self.registry,
            usd_per_second=self.tariff.usd_per_second(limits),
            microdollars=spent.microdollars,
            milliseconds=spent.milliseconds,
        )
        return spent.model_copy(update={"doubts": (doubt,)})

    def _whole_life(self, job: Job) -> Spent:
        return self.tariff.whole_life(job.limits, builds=bool(job.build))

    def _spent(self, job: Job, chamber: Chamber) -> Spent:
        """Of a chamber that is over without an outcome."""
        bill = chamber.bill
        if not bill.final:
            return self._at_worst(job, bill.unseen)
        return self._billed(job, bill.usd, bill.seconds, bill.unseen)

    def _told(self, error: Exception, chamber: Chamber) -> str:
        return str(error) if chamber.bill.final else f"{error}; {_AT_WORST}"

    def _disown(self) -> None:
        """What an attempt left in doubt before tells nothing of the chamber that it opens now."""
        task = asyncio.current_task()
        mine = [chamber for chamber, owner in self.unsure.items() if task and owner == task.get_name()]
        self.unsure.update(dict.fromkeys(mine, ""))

    def _doubt(self, job: Job, left: Chamber | SandboxError | None) -> None:
        """A caller that goes without booking it leaves a line where its end is not confirmed."""
        if isinstance(left, SandboxError):
            ended, chamber = not left.unended, left.chamber
        else:
            ended, chamber = left is None or left.bill.final, left.bill.unseen if left else ""
        if ended:
            return
        # A control job runs in no attempt's own chamber, whose end is another matter.
        task = asyncio.current_task() if chamber and job is not self.control else None
        line = f"{job.command[0]}: not confirmed to have ended"
        self.unsure[chamber or line] = task.get_name() if task else ""

    async def _broke_off(self, job: Job, chamber: Chamber, error: Unavailable | Lost) -> BrokeOff:
        spent, why = self._spent(job, chamber), self._told(error, chamber)
        if isinstance(error, TakenAway | Denied | Silent):
            denied = isinstance(error, Denied)
            return BrokeOff(why, proven=True, spent=spent, provider=self.name, denied=denied, told=True)
        try:
            control = await self._control()
        except BaseException:  # a Ctrl-C while it is asked: what is raised books nothing for this chamber
            self._doubt(job, chamber)
            raise
        # No candidate can bring down a provider that rents machines to everybody: its word is not needed.
        more = {"denied": control.denied, "told": self.tariff.is_rented}
        return BrokeOff(why, proven=not control.passed, spent=spent + control.spent, provider=self.name, **more)

    async def _open(self, job: Job) -> Chamber:
        """Raises NotStarted, and Refused. However it ends, all that was begun is ended, or known to be in doubt."""
        started = time.monotonic()
        opening = asyncio.ensure_future(self.backend.open(job))
        try:
            done, _ = await asyncio.wait({opening}, timeout=self.tariff.opening_s)
        except asyncio.CancelledError:
            self._doubt(job, await _given_up(opening))
            raise
        if not done:
            spent = self._spent_in_vain(job, await _given_up(opening), time.monotonic() - started)
            why = f"no chamber within {self.tariff.opening_s:g} s"
            raise NotStarted(Ending.STALLED, why, spent, provider=self.name)
        try:
            return opening.result()
        except (Unavailable, Lost) as error:
            why = f"{error}; {_AT_WORST}" if error.unended else str(error)
            spent = self.spent_on(job, error, time.monotonic() - started)
            denied = isinstance(error, Denied)
            raise NotStarted(Ending.INFRASTRUCTURE, why, spent, provider=self.name, denied=denied) from error

    def _spent_in_vain(self, job: Job, left: Chamber | SandboxError | None, seconds: float) -> Spent:
        if isinstance(left, SandboxError):
            return self.spent_on(job, left, seconds)
        if left is not None:
            return self._spent(job, left)
        return self._passed(job.limits, seconds, builds=bool(job.build)) if self.tariff.is_rented else Spent()

    def spent_on(self, job: Job, error: SandboxError, seconds: float = 0.0) -> Spent:
        """On a chamber that could not be had; on one's own machine that is nothing."""
        if error.unended:
            return self._at_worst(job, error.chamber)
        if not error.usd:
            return Spent()
        return self._billed(job, error.usd, seconds, error.chamber)

    async def _control(self) -> "_Control":
        """Whether a job that does nothing gets through; what is rented for that is paid for as well."""
        started = time.monotonic()
        try:
            chamber = await self._open(self.control)
        except NotStarted as error:
            return _Control(passed=False, spent=error.spent, denied=error.denied)
        except Refused as error:  # our own policy says nothing of the provider
            return _Control(passed=True, spent=self.spent_on(self.control, error))
        passed = False
        try:
            async with asyncio.timeout(self.tariff.opening_s), chamber:
                passed = (await chamber.run(Bundle({}))).exit_code == 0
        except (Unavailable, Lost, TimeoutError) as error:
            _log.warning("control job failed", error=str(error), seconds=round(time.monotonic() - started, 3))
        except BaseException:  # likewise
            self._doubt(self.control, chamber)
            raise
        spent = self._spent(self.control, chamber) if self.tariff.is_rented else Spent()
        return _Control(passed=passed, spent=spent)


@dataclass(frozen=True)
class _Control:
    passed: bool
    spent: Spent
    denied: bool = False


def _at_most(worst: Spent, spent: Spent) -> Spent:
    """It ended by itself before it could cost more than its whole life, however late we came to see it."""
    return Spent(
        microdollars=min(worst.microdollars, spent.microdollars),
        milliseconds=min(worst.milliseconds, spent.milliseconds),
    )


async def _given_up(opening: "asyncio.Future[Chamber]") -> Chamber | SandboxError | None:
    """End an opening that takes too long, or that nobody waits for any more: what it left, or the error that tells."""
    opening.cancel()
    await asyncio.wait({opening})
    if opening.cancelled():
        return None
    error = opening.exception()
    if error is None:  # it came at the last moment
        await opening.result().kill()
        return opening.result()
    if not isinstance(error, SandboxError):
        raise error
    return error


@asynccontextmanager
async def _overseen(chamber: Chamber, overseer: Overseer) -> AsyncIterator[None]:
    """Where the order to stop does not get through, the job's own limit ends it."""

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
