"""A chamber whose stdin and stdout are live, at any provider: used once, ended whatever happened."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import TracebackType
from typing import Protocol, Self

from sandbox.backend import Listener, Talk
from sandbox.bundle import Bundle
from sandbox.errors import Lost, Refused, SandboxError, Unavailable
from sandbox.happenings import NotDelivered, Order, Told
from sandbox.job import Ending, Job, Outcome, Usage
from sandbox.link import Deadlines, Link
from sandbox.logger import logger
from sandbox.price import Bill, billed_clock
from sandbox.pulse import Pulse
from sandbox.session import Session

DYING_S = 20.0
_OVER_TIME = (Ending.TIMED_OUT, Ending.BUILD_TIMED_OUT)


class Death(Enum):
    """What a chamber died of."""

    ITS_OWN_DOING = auto()
    MEMORY = auto()


class Hold(Protocol):
    """The provider's grip on one chamber."""

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> Link: ...

    @property
    def usd_per_second(self) -> float: ...

    @property
    def billed_since(self) -> float | None:
        """When the provider began to charge this job, by `billed_clock`; None: nobody charges, or from `serve` on.

        Of one that stood ready it is when it was taken from there: what it cost before was paid by the purse.
        """

    async def cause_of_death(self, timeout: float) -> Death:
        """The provider's own evidence, once the streams have ended.

        Raises Lost when the chamber is gone or was ended by somebody else, Unavailable without an answer.
        """

    async def answers(self) -> None:
        """Asked about a program that let its time pass: a machine that is half dead is as silent as one that hangs.

        Raises Unavailable when the machine does not answer, Lost when the chamber is gone.
        """

    async def processor_seconds(self) -> float | None:
        """What the chamber has used of the processors so far; None where the provider cannot tell, or not now."""

    async def destroy(self) -> None:
        """Kill and remove; harmless when gone. Raises Unavailable when the provider does not answer."""

    def release(self) -> None:
        """The chamber is dead and its streams are drained: let go of what is held on this side."""


# A chamber has a longest life, which a job must find room in.
LONGEST_WAIT_S = 3600.0


class LiveChamber:
    """Implements `Chamber` over a hold. `pulse` knows whether the provider was silent while it ran."""

    def __init__(
        self,
        hold: Hold,
        deadlines: Deadlines,
        on_end: Callable[["LiveChamber"], None] = lambda _: None,
        pulse: Pulse | None = None,
    ) -> None:
        self._hold = hold
        self._pulse = pulse
        self._log = logger(chamber=hold.name)
        self._on_end = on_end
        self._job: Job | None = None
        self._used = False
        self._end: asyncio.Task[bool] | None = None
        self._opened = billed_clock()
        self._made = time.monotonic()
        self._ended: float | None = None
        silence = pulse.silence if pulse else lambda _: 0.0
        self._session = Session(hold.link, deadlines, hold.processor_seconds, silence)

    @property
    def name(self) -> str:
        return self._hold.name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._session.facts

    @property
    def bill(self) -> Bill:
        since = self._hold.billed_since
        until = billed_clock() if self._ended is None else self._ended
        seconds = max(0.0, until - (self._opened if since is None else since))
        final = since is None or self._ended is not None
        usd, unseen = seconds * self._hold.usd_per_second, "" if final else self._hold.name
        return Bill(usd=usd, seconds=seconds, final=final, unseen=unseen)

    @property
    def broken(self) -> bool:
        """A waiting chamber whose streams have ended, or that waited too long, will never serve."""
        return self._session.deaf or time.monotonic() - self._made > LONGEST_WAIT_S

    async def greet(self) -> None:
        """Wait until it is ready for a bundle."""
        await self._session.hello()
        self._log.debug("chamber.ready", seconds=round(billed_clock() - self._opened, 3))

    async def give_up(self, error: BaseException) -> BaseException:
        """End one that never came to serve: the error to raise, which says what it cost and whether its end is sure.

        A cancellation is handed back as it is, unless the end is in doubt: the one who cancelled has to know.
        """
        await self.kill()
        bill = self.bill
        if not isinstance(error, SandboxError):
            if bill.final:
                return error
            error = Unavailable(f"{self.name} could not be ended, the provider does not answer; it is tried again")
        error.usd, error.unended, error.chamber = error.usd + bill.usd, not bill.final, bill.unseen
        return error

    def serve(self, job: Job) -> None:
        """From here on its time is the job's; what it spent waiting is not."""
        self._job = job
        self._opened = billed_clock()

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        if self._used or not self._job:
            raise Refused("a chamber is used once; open another")
        self._used = True
        try:
            with self._pulse.watched() if self._pulse else contextlib.nullcontext():
                told = await self._heard(self._job, bundle, listener, talk)
        except BaseException:
            await self.kill()
            raise
        await self._over(self._begin_end())
        outcome = self._outcome(told)
        self._log.debug("chamber.outcome", ending=outcome.ending, exit_code=outcome.exit_code, reason=outcome.reason)
        return outcome

    async def _over(self, ending: "asyncio.Task[bool]") -> None:
        """The end of PID 1's stdout is the end of the whole chamber. Without it, dead means confirmed dead.

        What is rented is charged until its end is confirmed, so that is waited for in any case.
        """
        silent = self._session.over
        if silent and self._hold.billed_since is None:
            return
        if not await asyncio.shield(ending) and not silent:
            raise Unavailable(f"{self.name} could not be ended, the provider does not answer; it is tried again")

    async def _heard(self, job: Job, bundle: Bundle, listener: Listener | None, talk: Talk | None) -> Told:
        """Raises Silent in place of what says nothing of the program, because the provider itself was silent."""
        since = time.monotonic()
        try:
            try:
                told = await self._session.run(job, bundle, listener, talk)
            except NotDelivered:
                if await self._hold.cause_of_death(DYING_S) is not Death.MEMORY:
                    raise
                told = Told(Ending.OUT_OF_MEMORY, reason="the bundle alone is over the memory limit", told=False)
            if told.unheard:
                await self._refuse_silence(since, Unavailable(told.reason))
            return await self._with_evidence(told)
        except SandboxError as error:
            await self._refuse_silence(since, error)
            raise

    async def _refuse_silence(self, since: float, error: SandboxError) -> None:
        """A provider that is away is waited for: one that answers again can be told to end the chamber."""
        if self._pulse and self._end is None:
            found = await self._pulse.whose(error, since)
            if found is not error:
                raise found from error

    async def stop(self) -> None:
        self._session.order(Order.STOP)

    async def kill(self) -> None:
        await asyncio.shield(self._begin_end())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    def _begin_end(self) -> "asyncio.Task[bool]":
        if self._end is None:
            self._end = asyncio.create_task(self._destroy())
        return self._end

    async def _destroy(self) -> bool:
        """Whether its death is confirmed."""
        self._session.order(Order.KILL)
        try:
            await self._hold.destroy()
            self._ended = billed_clock()
            await self._session.drained(DYING_S)
        except SandboxError as error:  # whatever the provider says to that, its end is not confirmed
            self._log.warning("chamber.not_ended", reason=str(error))
            return False
        finally:
            await self._session.close()
            self._hold.release()
            self._on_end(self)
        return True

    async def _with_evidence(self, told: Told) -> Told:
        """Ask the provider what a failed program died of, and whether it is the program that failed at all."""
        if told.ending in _OVER_TIME and self._end is None:
            await self._hold.answers()
        if not told.doubtful:
            return told
        await self._session.drained(DYING_S)
        try:
            death = await self._hold.cause_of_death(DYING_S)
        except Lost:
            if self._end is None:
                raise
            return Told(Ending.KILLED, reason="killed by order", told=False)
        if death is Death.MEMORY:
            return Told(Ending.OUT_OF_MEMORY, told.exit_code, "over its memory limit", told=False)
        return told

    def _outcome(self, told: Told) -> Outcome:
        seconds, log, bill = self._session.seconds, self._session.log, self.bill
        usage = Usage(
            build_s=seconds.get("built", 0.0),
            run_s=seconds.get("done", 0.0),
            collect_s=seconds.get("collect", 0.0),
            held_s=bill.seconds,
            log_bytes=log.count,
            bad_reports=log.bad_reports,
            output_bytes=sum(map(len, told.outputs.values())),
            usd=bill.usd,
        )
        return Outcome(
            ending=told.ending,
            exit_code=told.exit_code,
            reason=told.reason,
            outputs=told.outputs,
            log_tail=log.tail,
            facts=self.facts,
            usage=usage,
            told=told.told,
        )
