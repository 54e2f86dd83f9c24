"""A chamber on a rented machine: one bundle there, one report back. No live log, no relay, no stop; kill there is."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Protocol, Self, TypeVar

from sandbox.backend import Listener, Talk
from sandbox.backends.skypilot.machine import BOX_S, TRIES, TRY_PAUSE_S, Machine
from sandbox.box.report import broken, with_usage
from sandbox.bundle import Bundle
from sandbox.errors import Denied, Refused, SandboxError, Unavailable
from sandbox.happenings import NotDelivered
from sandbox.job import Ending, Job, Outcome
from sandbox.logger import logger
from sandbox.price import Bill
from sandbox.pulse import Pulse
from sandbox.reading import Reading
from sandbox.script import scripts
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.log import Log

SUBMIT_S = 120.0
T = TypeVar("T")


def box_seconds(job: Job) -> float:
    """The most that a trial takes on the machine, by the machine's own clock."""
    limits = job.limits
    return limits.wall + limits.grace + (limits.build if job.build else 0.0) + BOX_S


class Berth(Protocol):
    """A machine for the time of one chamber."""

    @property
    def machine(self) -> Machine: ...

    @property
    def unseen(self) -> str:
        """Its name, where this chamber pays for it and its end could not be confirmed."""

    async def leave(self, *, clean: bool) -> float:
        """Give it back; dollars that this chamber cost. Not clean: nobody may use the machine again."""


class RentedChamber:
    """Implements `Chamber`. `facts` were heard before any hostile byte was on the machine, or on a reused one said."""

    def __init__(self, berth: Berth, job: Job, runtime: str, facts: Mapping[str, str], pulse: Pulse) -> None:
        self._pulse = pulse
        self._berth = berth
        self._job = job
        self._runtime = runtime
        self._facts = facts
        self._opened = time.monotonic()
        self._used = False
        self._kill = asyncio.Event()
        self._end: asyncio.Task[float] | None = None
        self._ended = self._opened

    @property
    def name(self) -> str:
        return self._berth.machine.name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts

    @property
    def bill(self) -> Bill:
        """Of one that could not be ended it is already the worst case: until the end that the machine has by itself."""
        if self._end is None or not self._end.done() or self._end.cancelled() or self._end.exception():
            return Bill(seconds=time.monotonic() - self._opened, final=False, unseen=self.name)
        return Bill(usd=self._end.result(), seconds=self._ended - self._opened, unseen=self._berth.unseen)

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        if self._used or self._end:
            raise Refused("a chamber is used once; open another")
        if talk:
            raise Refused("a rented machine has no relay; nobody can talk to this chamber")
        self._used = True
        bundle.pack(self._job.limits.bundle_bytes, scripts(self._job))
        bundle.check_room(self._job.limits)
        since = time.monotonic()
        try:
            with self._pulse.watched():
                outcome = await self._raced(bundle)
        except SandboxError as error:
            found = await self._pulse.whose(error, since)
            found.usd += await self._leave(clean=False)
            raise found from error.__cause__
        except BaseException:
            await self._leave(clean=False)
            raise
        usd = await self._leave(clean=outcome.ending not in (Ending.PROTOCOL, Ending.KILLED))
        await _hear(outcome, self._job, listener)
        outcome = with_usage(outcome, time.monotonic() - self._opened, usd)
        logger(chamber=self.name).debug("chamber.outcome", ending=outcome.ending, reason=outcome.reason)
        return outcome

    async def stop(self) -> None:
        """There is no way to ask: the job's own limit ends it."""

    async def kill(self) -> None:
        self._kill.set()
        await self._leave(clean=not self._used)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    async def _raced(self, bundle: Bundle) -> Outcome:
        """The trial, unless it is killed first."""
        running = asyncio.create_task(self._trial(bundle))
        killing = asyncio.create_task(self._kill.wait())
        try:
            await asyncio.wait([running, killing], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            return Outcome(ending=Ending.KILLED, reason="killed by order", facts=self._facts, told=False)
        finally:
            for task in (running, killing):
                task.cancel()
            await asyncio.wait([running, killing])

    async def _trial(self, bundle: Bundle) -> Outcome:
        machine, job = self._berth.machine, self._job
        seconds = box_seconds(job)
        try:
            trial = await self._patiently(lambda: machine.deliver(job, self._runtime, seconds, bundle))
        except SandboxError as error:
            raise NotDelivered(f"the bundle was not delivered: {error}") from error
        started = time.monotonic()
        try:
            await self._patiently(lambda: machine.start(trial))
            report = await machine.collect(trial, job.limits, time.monotonic() + seconds + SUBMIT_S)
            return report.outcome(job.limits, self._facts, time.monotonic() - started)
        except WireFault as fault:
            return broken(fault, self._facts)
        except Refused as error:  # SkyPilot's word, not our policy's: the candidate has no part in it
            raise Unavailable(f"SkyPilot refused after delivery: {error}") from error

    async def _patiently(self, act: Callable[[], Awaitable[T]]) -> T:
        """Again after a silence of the provider, and some times without one: a line may be back before it is missed."""
        begun, tries = time.monotonic(), 0
        while True:
            since = time.monotonic()
            try:
                return await act()
            except Unavailable as error:
                tries += 1
                silent = await self._pulse.silence_until_it_answers(since)
                over = time.monotonic() - begun >= self._pulse.patience_s
                if isinstance(error, Denied) or over or not (silent or tries < TRIES):
                    raise
            await asyncio.sleep(TRY_PAUSE_S)

    def _note_end(self, _: "asyncio.Task[float]") -> None:
        self._ended = time.monotonic()

    async def _leave(self, *, clean: bool) -> float:
        """Once, for the first to ask, and to its end even when that one is cancelled."""
        if self._end is None:
            self._end = asyncio.create_task(self._berth.leave(clean=clean))
            self._end.add_done_callback(self._note_end)
        return await asyncio.shield(self._end)


async def _hear(outcome: Outcome, job: Job, listener: Listener | None) -> None:
    """The tail of the log, once it is here: better late than not at all."""
    if listener:
        log = Log(max(job.limits.log_bytes, len(outcome.log_tail)), listener.line, listener.report)
        try:
            await Reading().read(log.steps(outcome.log_tail))
        except WireFault as fault:
            if fault.fault is not Fault.LOG_OVERFLOW:
                raise
        log.close()
