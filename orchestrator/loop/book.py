"""Every event goes through here: folded into state and accounts, and written with the rows that it changed."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from orchestrator.budget import BOOKS, Account, Accounts, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.folding import fold
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts, Entry, Ledger, canonical
from orchestrator.units import stamp, utc_now

Observer = Callable[[e.Event, str], None]


class Book:
    """The campaign in memory and on disk, always the same: what could not be written ends the session."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts, clock: Callable[[], datetime] = utc_now) -> None:
        rows = ledger.snapshot().rows
        self.ledger = ledger
        self._artifacts = artifacts
        self.state = State.from_rows(rows)
        self.accounts = Accounts.from_ledger(rows)
        self.observers: list[Observer] = []
        self._clock = clock
        self._noted: list[e.Event] = []
        self._at = ""
        self._booked = False
        self._failure: BaseException | None = None
        self._writing: asyncio.Handle | None = None  # of what is noted
        self._change = asyncio.Event()

    @property
    def is_broken(self) -> bool:
        """Whether something could not be written; then memory is ahead of the disk, and the session must end."""
        return self._failure is not None

    def now(self) -> datetime:
        return self._clock()

    def note(self, *events: e.Event) -> None:
        """Fold events in, to be written with the next ones that are recorded: one transaction instead of two.

        For what is followed by another record at once. Where something is awaited first, they are written in the
        loop's next turn. A crash before they are written is a crash before they happened.
        """
        self._fold(events)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().call_soon(self._write_noted)

    def _fold(self, events: Sequence[e.Event]) -> None:
        with self._or_broken():
            if not self._noted:
                # One time for all that is written together: folding the ledger again must give the same.
                self._at = stamp(self._clock())
            for event in events:
                self._booked |= book(self.accounts, event)
                fold(self.state, event, self._at)
                self._noted.append(event)

    def _write_noted(self) -> None:
        """Nobody waits here to be told what went wrong: the next one that records is."""
        try:
            self.record()
        except BaseException:
            if not self.is_broken:
                raise

    def record(self, *events: e.Event) -> None:
        """All of them, and what was noted before, or none. Raises what the ledger raises, and from then on the same."""
        if self._writing:
            self._writing.cancel()
            self._writing = None
        self._fold(events)
        with self._or_broken():
            rows: dict[tuple[str, str], str | None] = {key: self.state.row(key) for key in self.state.touched}
            if self._booked:
                rows[BOOKS] = json.dumps(self.accounts.as_rows())
            # An event must never speak of bytes that a power cut can still take.
            self._artifacts.sync()
            written, self._noted, self._booked = self._noted, [], False
            entries = [Entry(it.kind, canonical(it.model_dump(mode="json"))) for it in written]
            self.ledger.append(entries, rows, self._at)
            self.state.touched.clear()
        self._change.set()
        self._change = asyncio.Event()
        for event in written:
            for observer in self.observers:
                observer(event, self._at)

    @contextmanager
    def _or_broken(self) -> Iterator[None]:
        """Of several attempts at work, any may be the first to be heard; each of them tells the one cause."""
        if self._failure:
            raise self._failure
        try:
            yield
        except BaseException as failure:
            self._failure = failure
            raise

    async def changed(self) -> None:
        """Until something more is recorded."""
        await self._change.wait()


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
        case _:
            return False
    return True
