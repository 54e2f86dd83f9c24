"""A chamber whose stdin and stdout are live, whoever provides it: used once, ended whatever happened."""

import asyncio
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from sandbox.backend import Listener, Talk
from sandbox.bundle import Bundle
from sandbox.errors import Refused, Unavailable
from sandbox.job import Ending, Job, Outcome, Usage
from sandbox.link import Deadlines, Link
from sandbox.logger import logger
from sandbox.session import NotDelivered, Order, Session, Told

DYING_S = 20.0


class Hold(Protocol):
    """The provider's grip on one chamber."""

    @property
    def name(self) -> str: ...

    @property
    def link(self) -> Link: ...

    @property
    def usd_per_second(self) -> float: ...

    async def ran_out_of_memory(self, timeout: float) -> bool:
        """The provider's own evidence, once the program has ended. Raises Lost when the chamber is gone."""

    async def destroy(self) -> None:
        """Kill and remove; harmless when gone. Raises Unavailable when the provider does not answer."""

    def release(self) -> None:
        """The chamber is dead and its streams are drained: let go of what is held on this side."""


class LiveChamber:
    """Implements `Chamber` over a hold."""

    def __init__(
        self, hold: Hold, deadlines: Deadlines, on_end: Callable[["LiveChamber"], None] = lambda _: None
    ) -> None:
        self._hold = hold
        self._log = logger(chamber=hold.name)
        self._on_end = on_end
        self._job: Job | None = None
        self._used = False
        self._end: asyncio.Task[None] | None = None
        self._opened = time.monotonic()
        self._session = Session(hold.link, deadlines)

    @property
    def name(self) -> str:
        return self._hold.name

    @property
    def facts(self) -> Mapping[str, str]:
        return self._session.facts

    @property
    def broken(self) -> bool:
        """A waiting chamber whose streams have ended will never serve."""
        return self._session.over

    async def greet(self) -> None:
        """Wait until it is ready for a bundle."""
        await self._session.hello()
        self._log.debug("chamber.ready", seconds=round(time.monotonic() - self._opened, 3))

    def serve(self, job: Job) -> None:
        self._job = job

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        if self._used or not self._job:
            raise Refused("a chamber is used once; open another")
        self._used = True
        try:
            told = await self._with_evidence(await self._told(self._job, bundle, listener, talk))
        except BaseException:
            await self.kill()
            raise
        ending = self._begin_end()
        if not self._session.over:
            # The end of PID 1's stdout is the end of the whole chamber. Without it, dead means confirmed dead.
            await asyncio.shield(ending)
        outcome = self._outcome(told)
        self._log.debug("chamber.outcome", ending=outcome.ending, exit_code=outcome.exit_code, reason=outcome.reason)
        return outcome

    async def _told(self, job: Job, bundle: Bundle, listener: Listener | None, talk: Talk | None) -> Told:
        try:
            return await self._session.run(job, bundle, listener, talk)
        except NotDelivered:
            if await self._hold.ran_out_of_memory(DYING_S):
                return Told(Ending.OUT_OF_MEMORY, reason="the bundle alone is over the memory limit", told=False)
            raise

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

    def _begin_end(self) -> "asyncio.Task[None]":
        if self._end is None:
            self._end = asyncio.create_task(self._destroy())
        return self._end

    async def _destroy(self) -> None:
        self._session.order(Order.KILL)
        try:
            await self._hold.destroy()
        except Unavailable as error:
            self._log.warning("chamber.left_to_reap", reason=str(error))
        else:
            await self._session.drained(DYING_S)
        finally:
            await self._session.close()
            self._hold.release()
            self._on_end(self)

    async def _with_evidence(self, told: Told) -> Told:
        """Ask the provider what a failed program died of, and whether it is the program that failed at all."""
        if told.ending not in (Ending.FAILED, Ending.BUILD_FAILED):
            return told
        await self._session.drained(DYING_S)
        if await self._hold.ran_out_of_memory(DYING_S):
            return Told(Ending.OUT_OF_MEMORY, told.exit_code, "over its memory limit", told=False)
        return told

    def _outcome(self, told: Told) -> Outcome:
        seconds = self._session.seconds
        held = time.monotonic() - self._opened
        usage = Usage(
            build_s=seconds.get("built", 0.0),
            run_s=seconds.get("done", 0.0),
            collect_s=seconds.get("collect", 0.0),
            held_s=held,
            log_bytes=self._session.log.count,
            output_bytes=sum(map(len, told.outputs.values())),
            usd=held * self._hold.usd_per_second,
        )
        return Outcome(
            ending=told.ending,
            exit_code=told.exit_code,
            reason=told.reason,
            outputs=told.outputs,
            log_tail=self._session.log.tail,
            facts=self.facts,
            usage=usage,
            told=told.told,
        )
