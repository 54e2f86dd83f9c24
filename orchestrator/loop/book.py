"""Every event goes through here: folded into state and accounts at once, and written in the order of the folds.

Memory is ahead of the disk by what waits to be written, and nothing else is: whatever reaches the outside (a chamber,
a model, a rented machine, a branch, a removal, an answer) waits for `durable` first. So a process that dies has done
nothing that its ledger does not account for.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from orchestrator.budget import BOOKS, Account, Accounts, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.folding import fold
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts, Entry, Ledger, LedgerError, Request, canonical
from orchestrator.ledger.writer import Writer  # who only reads starts no thread, nor loads what threads need
from orchestrator.units import stamp, utc_now

# Told of an event and of its time.
Observer = Callable[[e.Event, str], None]


class _Folded(NamedTuple):
    event: e.Event
    at: str
    body: str


class Book:
    """The campaign in memory, and on disk as far as it is written; what could not be written ends the session.

    `listeners` are parts of the campaign itself, told of an event as soon as it is folded. `observers` are all others:
    they are told of no event that a crash could still take back. `state` and `accounts` may be further by then: a
    figure that an observer takes from there may be ahead of the disk.
    """

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Callable[[], datetime] = utc_now) -> None:
        rows = ledger.snapshot().rows
        self.ledger = ledger
        self.state = State.from_rows(rows, at_once=False)
        self.accounts = Accounts.from_ledger(rows)
        self.listeners: list[Observer] = []
        self.observers: list[Observer] = []
        self._writer = Writer(ledger, artifacts)
        self.clock = clock
        self._waiting: list[_Folded] = []  # folded, and not with the writer yet
        self._writing: Future[None] | None = None
        self._turn: asyncio.Handle | None = None  # in which the writer gets what waits
        self._folded = self._written = 0  # how many events
        self._awaited: dict[asyncio.Future[None], int] = {}  # by whom, and which number of them
        self._booked = False
        self._failure: BaseException | None = None
        self._of_observer: BaseException | None = None
        self._change = asyncio.Event()

    @property
    def is_broken(self) -> bool:
        """Whether something could not be written; then memory is ahead of the disk for good: the session must end."""
        return self._failure is not None

    def late_s(self) -> float:
        """For so long nothing could be begun, since the ledger took its time."""
        return self._writer.late_s

    def now(self) -> datetime:
        return self.clock()

    def record(self, *events: e.Event) -> None:
        """Fold them in, and have them written: all of them or none, after all that was recorded before.

        What is recorded in one turn of the loop, or while the disk is busy, is one transaction. Where no loop runs, it
        is on disk when this returns. Raises what the ledger raised, from then on every time.
        """
        if not events:
            return
        folded = self._fold(events)
        try:
            for event, at, _ in folded:
                for listener in self.listeners:
                    listener(event, at)
        finally:  # folded is folded: it is written whatever a listener makes of it
            self._change.set()
            self._change = asyncio.Event()
            self._have_written()

    async def durable(self) -> None:
        """Until all that is recorded by now is on disk for good. Raises what the ledger raised where it cannot be."""
        if self._failure:
            raise self._failure
        if self._written == self._folded:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[waiter] = self._folded
        try:
            await waiter
        finally:
            del self._awaited[waiter]

    def check(self) -> None:
        """Raises what the ledger raised; and once, what an observer did."""
        if self._failure:
            raise self._failure
        fault, self._of_observer = self._of_observer, None
        if fault:
            raise fault

    async def requests(self) -> list[Request]:
        """Those that were not taken yet. A ledger that cannot be read any more is not written any more either."""
        try:
            return await asyncio.wrap_future(self._writer.requests(self.state.campaign.request))
        except LedgerError as failure:
            self.fail(failure)
            raise

    def hurry(self) -> None:
        """A person wants an end: a database that is away is not waited for any longer."""
        self._writer.give_up()

    async def close(self) -> None:
        """When all that can be written is written. Nothing can be recorded after it."""
        try:
            if not self.is_broken:
                await self.durable()
        finally:
            self.hurry()
            self._writer.close()

    async def changed(self) -> None:
        """Until something more is recorded."""
        await self._change.wait()

    def _fold(self, events: Sequence[e.Event]) -> list[_Folded]:
        if self._failure:
            raise self._failure
        try:
            at = stamp(self.clock())
            folded = []
            for event in events:
                if isinstance(event, e.AttemptOpened):
                    event = event.model_copy(update={"order": self.state.campaign.openings + 1})
                elif isinstance(event, e.AttemptEnded):
                    event = event.model_copy(update={"order": self.state.campaign.endings + 1})
                self._booked |= book(self.accounts, event)
                fold(self.state, event, at)
                folded.append(_Folded(event, at, canonical(event.model_dump(mode="json"))))
        except BaseException as failure:
            self.fail(failure)
            raise
        self._waiting += folded
        self._folded += len(folded)
        return folded

    def _have_written(self) -> None:
        if not self._waiting:  # a listener recorded something, and ours went with it
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._write_here()
            return
        if self._turn is None and self._writing is None:
            self._turn = loop.call_soon(self._hand_over, loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """All that waits goes to the writer, in one go."""
        self._turn = None
        if self._failure or self._writing or not self._waiting:
            return
        batch = self._waiting
        # Nobody is here to be told what is wrong: those who wait are, and the next one that records.
        with suppress(BaseException):
            self._begin_writing().add_done_callback(
                lambda work: loop.call_soon_threadsafe(self._finish_writing, work, batch, loop)
            )

    def _write_here(self) -> None:
        """Where no loop runs: the writer is waited for."""
        if self._failure:
            raise self._failure
        batch = self._waiting
        self._finish_writing(self._begin_writing(), batch, None)
        self.check()

    def _begin_writing(self) -> "Future[None]":
        """With the rows as they are now: earlier versions of a row, which nobody will read, are never written."""
        try:
            with_books = {BOOKS: json.dumps(self.accounts.as_rows())} if self._booked else {}
            rows = {**{key: self.state.row(key) for key in self.state.touched}, **with_books}
            batch, self._waiting, self._booked = self._waiting, [], False
            self.state.touched.clear()
            entries = [Entry(event.kind, body, at) for event, at, body in batch]
            self._writing = self._writer.append(entries, rows, batch[-1].at)
        except BaseException as failure:
            self.fail(failure)
            raise
        return self._writing

    def _finish_writing(
        self, work: "Future[None]", batch: list[_Folded], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        failure = work.exception()
        self._writing = None
        if failure:
            self.fail(failure)
            return
        self._written += len(batch)
        try:
            for event, at, _ in batch:
                for observer in self.observers:
                    observer(event, at)
        except BaseException as fault:  # noqa: BLE001  nobody is here to be told: the campaign looks for it
            self._of_observer = fault
        for waiter, number in self._awaited.items():
            if number <= self._written and not waiter.done():
                waiter.set_result(None)
        if loop:
            self._hand_over(loop)

    def fail(self, failure: BaseException) -> None:
        """Nothing more is recorded. Of several attempts at work, any may be heard first; each tells the one cause."""
        self._failure = self._failure or failure
        for waiter in self._awaited:
            if not waiter.done():
                waiter.set_exception(failure)


def book(accounts: Accounts, event: e.Event) -> bool:
    """Fold an event into the accounts; False for one that is not about money."""
    match event:
        case e.LimitsSet():
            accounts.raise_limits({account: event.limits.get(account.value) for account in Account})
        case e.Reserved():
            accounts.reserve(event.hold, Amounts.from_row(event.amounts))
        case e.Settled():
            accounts.settle(event.hold, Amounts.from_row(event.spent))
        case e.Refunded():
            accounts.refund(event.hold, Amounts.from_row(event.spent), lost=event.lost)
        case e.Charged():
            accounts.charge(Amounts.from_row(event.spent), lost=event.lost)
        case e.DoubtSettled():
            accounts.credit(Amounts.from_row(event.freed), lost=event.lost)
        case _:
            return False
    return True
