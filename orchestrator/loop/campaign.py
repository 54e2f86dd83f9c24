"""The loop itself: opens attempts while the caps, the stop rules and the rate allow, and waits for what they bring."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from orchestrator.budget import RateLimit
from orchestrator.budget.stops import Stop
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.minimal import minimal_of
from orchestrator.domain.records import Node, Phase
from orchestrator.ledger import LedgerError
from orchestrator.llm.line import Unusable
from orchestrator.loop.attempt import Attempt
from orchestrator.loop.breaker import Standing
from orchestrator.loop.evolving import Evolving
from orchestrator.loop.free_bound import FreeBound
from orchestrator.loop.interruption import reconcile
from orchestrator.loop.keeping import nothing_can_be_kept
from orchestrator.loop.money import refund_all
from orchestrator.loop.pool import fill_pool
from orchestrator.loop.profiling import is_due, take_profile
from orchestrator.loop.purse import settle_left
from orchestrator.loop.requests import Inbox
from orchestrator.loop.scheduler import Scheduler
from orchestrator.loop.selection import Population
from orchestrator.loop.settling import Settling
from orchestrator.loop.verifying import Holds
from orchestrator.loop.workbench import BaselineFailed, PoolFailed, Workbench
from orchestrator.proposers import PluginFailed
from sandbox import Refused, SandboxError, Unavailable

_log = structlog.get_logger()
POLL_S = 0.2
# How long a provider is waited for that has done nothing for the campaign yet: so little is lost with it.
_AT_FIRST_S = 300.0


@dataclass(frozen=True)
class Finished:
    """`best` has the values of the champion, `baseline` those of the baseline: where scores are noisy, the medians of
    their repeats. `champion.verdict` is that of its first run. `gave_up`: too many attempts in a row ended free.
    """

    reason: str
    champion: Node | None
    best: Headline | None = None
    baseline: Headline | None = None
    gave_up: bool = False


class Campaign:
    """Runs one session of a campaign until a rule holds: at `stop` no more is opened, at `deadline` all is ended.

    `width` is this session's; without one it is the run's. `selection` says where branches start, if not at the best.
    With `review` it ends after each round. With `minimise` the champion is taken apart when nothing more
    is opened. `patience_s` is how long providers may be away, without an end if None.
    """

    def __init__(
        self,
        bench: Workbench,
        stop: Stop,
        deadline: Stop,
        rate: RateLimit | None = None,
        width: int | None = None,
        selection: Population | None = None,
        evolving: Evolving | None = None,
        *,
        review: bool = False,
        minimise: bool = False,
    ) -> None:
        self._bench = bench
        self._bound = FreeBound.of(bench)
        self._awake = bench.door.awake
        self._missed = 0.0
        self._evolving = evolving
        self._width = width or bench.state.run.width
        self._stop = stop
        self._deadline = deadline
        self._scheduler = Scheduler(bench, stop, rate, self._width, selection, self._start, review=review)
        self._running: dict[asyncio.Task[str | None], str] = {}
        self._before_trying: set[asyncio.Task[str | None]] = set()
        self._cancelled: set[str] = set()
        self._asked_to_stop: str | None = None
        self._heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._minimises_at_end = minimise and not review
        self._searched = ""
        self._holds = Holds(bench)
        self._inbox = Inbox(bench, self._cancel)
        self._settling = Settling(bench.book, bench.door)
        self.patience_s: float | None = None

    def stop(self, why: str) -> None:
        """End cleanly and soon: what is under way is ended, refunded and queued for a resume."""
        self._asked_to_stop = self._asked_to_stop or why
        if not self._heard.done():
            self._heard.set_result(None)
        self._bench.book.hurry()

    def minimise(self, winner: str) -> None:
        """Take a node apart in this session, and do nothing else."""
        self._scheduler.minimise(winner)

    async def run(self) -> Finished:
        """Raises BaselineFailed when the task does not work as it stands, Unusable when a provider takes nothing,
        PluginFailed when the code of a plugin is at fault, PoolFailed when there is nothing to combine.
        """
        reconcile(self._bench)
        self._bench.breaker.begin(self._width)
        if self._scheduler.rounds:
            self._scheduler.rounds.begin()
        self._awake.begin()
        try:
            reason = await self._fill_pool() or await self._loop()
            gave_up = reason == self._bound.reached(self._bench.state.campaign)
            errors = await self._end_all()
        except (Unusable, Refused, Unavailable, BaselineFailed, PluginFailed, PoolFailed) as refused:
            await self._end_all()
            await self._stopped(str(refused))
            raise
        except BaseException:
            try:
                await (self._abandon() if self._bench.book.is_broken else self._end_all())
            except LedgerError:
                await self._abandon()
            raise
        if errors:
            raise errors[0]
        await self._stopped(reason, gave_up=gave_up)
        state = self._bench.state
        champion, root = state.champion(), state.nodes.get(state.run.root)
        best, baseline = (headline(state, it, state.run.cohort) if it else None for it in (champion, root))
        return Finished(reason, champion, best, baseline, gave_up=gave_up)

    async def _fill_pool(self) -> str | None:
        """Before a combination stage begins; the reason where the session is to end meanwhile."""
        if (pooling := self._bench.pooling) is None or pooling.delivered:
            return None
        return await self._see_through(fill_pool(self._bench, pooling))

    async def _take_profile(self) -> str | None:
        """Before the first change; the reason where the session is to end meanwhile."""
        idle = self._scheduler.minimises or self._bench.state.campaign.paused or self._bench.breaker.is_open
        if idle or self._running or not is_due(self._bench):
            return None
        return await self._see_through(take_profile(self._bench))

    async def _see_through(self, doing: Coroutine[Any, Any, None]) -> str | None:
        """To its end; or to the reason why the session is to end meanwhile."""
        work = asyncio.create_task(doing)
        try:
            while not work.done():
                await self._first_of(work)
                if reason := self._reason_to_end():
                    return reason
            work.result()
        finally:
            work.cancel()
            await asyncio.wait({work})
        return None

    async def _stopped(self, reason: str, *, gave_up: bool = False) -> None:
        self._bench.book.record(e.CampaignStopped(reason=reason, gave_up=gave_up), e.SessionEnded(why=reason))
        await self._bench.book.durable()
        self._bench.book.check()

    async def _loop(self) -> str:
        breaker = self._bench.breaker
        while True:
            self._bench.book.check()
            asked = await self._bench.book.requests()
            # What ended while they were read: an answer, or a free place, must not be about something that is over; and
            # what was asked when it ended goes before what follows it.
            while self._finish_what_ended():
                asked = await self._bench.book.requests()
            self._inbox.answer(asked)
            self._settling.turn()
            if reason := self._reason_to_end() or self._bound.reached(self._bench.state.campaign):
                if not self._may_be_settled():
                    return reason
                await self._wait()
                continue
            breaker.look(at_work=bool(self._running))
            self._lose_patience()
            self._bench.shelf.turn()
            self._evolve()
            if reason := await self._take_profile():
                return reason
            waiting = self._scheduler.fill(self._room())
            may_be_settled = waiting and self._may_be_settled()
            if not self._running and waiting and not may_be_settled and not self._goes_on_to_minimise(waiting):
                return self._searched + waiting
            if not self._running and self._scheduler.short and self._bench.state.standing:
                # What stands ready for attempts must not keep the last of them from its money.
                await self._stand_down()
            await self._wait()

    def _may_be_settled(self) -> bool:
        """Whether the session stays a while for what is booked at its worst: money may come free for the search."""
        return not self._running and not self._asked_to_stop and self._settling.is_pending

    def _goes_on_to_minimise(self, reason: str) -> bool:
        champion = self._bench.state.champion()
        if not self._minimises_at_end or self._scheduler.minimises or champion is None or not champion.parent:
            return False
        if minimal_of(self._bench.state, champion) or nothing_can_be_kept(self._bench.rules, self._bench.state):
            return False
        self._searched = f"{reason}; "
        self._scheduler.minimise(champion.id)
        return True

    def _room(self) -> int:
        """How many may be started. While a provider is tried, one; what runs since before it went away is no try."""
        room = self._width - len(self._running)
        if not self._bench.breaker.is_trying:
            self._before_trying = set(self._running)
            return room
        return min(room, 1 - len(self._running.keys() - self._before_trying))

    def _reason_to_end(self) -> str | None:
        """By what a person said, or by the clock, on which time that we slept through does not stand."""
        self._take_stock()
        return self._asked_to_stop or self._deadline.reason(self._scheduler.progress())

    def _take_stock(self) -> None:
        """After a standstill. What died meanwhile is found by its attempt; the time counts for nobody."""
        if late := self._awake.missed - self._missed:
            self._missed += late
            self._bench.book.record(e.StoodStill(seconds=round(late, 3)))

    def _lose_patience(self) -> None:
        """Raises Unavailable: the provider is away for longer than it is worth waiting for."""
        breaker, state = self._bench.breaker, self._bench.state
        root = state.nodes.get(state.run.root)
        patience = self.patience_s
        if patience is None and (root is None or root.phase is not Phase.ENDED):
            patience = _AT_FIRST_S
        if patience is not None and breaker.is_open and breaker.waited_s > patience:
            raise Unavailable(f"{breaker.why}; given up after {breaker.waited_s:.0f} s, blastdoor resume goes on")

    def _evolve(self) -> None:
        if self._evolving:
            stops = self._bench.state.campaign.paused or self._bench.breaker.standing is not Standing.CLOSED
            may_ask = not stops and not self._stop.reason(self._scheduler.progress())
            self._evolving.turn(may_ask=may_ask)

    def _start(self, node: str) -> None:
        self._running[asyncio.create_task(Attempt(self._bench, node).run(), name=node)] = node

    async def _wait(self) -> None:
        await self._first_of(*self._running)
        self._finish_what_ended()

    def _finish_what_ended(self) -> bool:
        """Whether something had."""
        ended = [task for task in self._running if task.done()]
        for task in ended:
            self._finish(task)
        return bool(ended)

    async def _first_of(self, *tasks: "asyncio.Task[Any]") -> None:
        """Until one of them ends, a stop is asked for, or it is time to look around."""
        await asyncio.wait((self._heard, *tasks), timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
        self._bench.book.check()

    def _finish(self, task: "asyncio.Task[str | None]") -> None:
        node = self._running.pop(task)
        self._holds.count(self._bench.state.nodes[node])
        if node in self._cancelled:
            self._cancelled.discard(node)
            record = self._bench.state.nodes[node]
            if record.phase is not Phase.ENDED:
                ended = e.AttemptEnded(node=node, ending=Ending.CANCELLED, why="cancelled by a person")
                self._bench.book.record(*refund_all(self._bench, record, lost=False), ended)
        elif not task.cancelled():
            self._scheduler.see_what_is_left(self._bench.state.nodes[node], task.result())

    async def _end_all(self) -> list[BaseException]:
        """Cancel what is under way and wait until its chambers are gone; what went wrong in it."""
        self._awake.end()
        await self._bench.breaker.close()
        self._bench.breaker.tell()
        if self._evolving:
            await self._evolving.close()
        for task, node in self._running.items():
            self._kill(task, node, "the session ends")
        if self._running:
            await asyncio.wait(self._running)
        errors = [error for task in self._running if not task.cancelled() and (error := task.exception())]
        self._running = {}
        try:
            await self._stand_down()
            reconcile(self._bench)
            settle_left(self._bench.book, worst=True)
            await self._settling.close()
            if self._bench.purse:
                self._bench.purse.close()
        finally:
            # Last: what goes wrong with a removal must not leave a rented machine behind.
            await self._bench.shelf.close()
        return errors

    async def _abandon(self) -> None:
        """Nothing can be recorded any more: end the chambers, and leave the rest to a resume."""
        self._awake.end()
        await self._bench.breaker.close()
        await self._settling.give_up()
        if self._bench.purse:
            self._bench.purse.close()
        if self._evolving:
            await self._evolving.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._stand_down()

    async def _stand_down(self) -> None:
        """What cannot be ended now is booked at its worst case; the provider's own lifetime ends it."""
        try:
            await self._bench.stand_down()
        except SandboxError as error:
            _log.warning("not all that stands could be ended", error=str(error))

    def _cancel(self, node: str) -> bool:
        for task, name in self._running.items():
            if name == node:
                self._cancelled.add(node)
                self._kill(task, node, "cancelled by a person")
                return True
        return False

    def _kill(self, task: "asyncio.Task[str | None]", node: str, why: str) -> None:
        """The intent first; the attempt itself says when its chambers are gone. A second kill would cut that short."""
        if not task.done() and not task.cancelling():
            self._bench.book.record(e.KillIntended(node=node, why=why))
            task.cancel()
