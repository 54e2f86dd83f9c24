"""The ledger: events and what they add up to, written together, on disk for good before anyone is told.

What a commit costs depends on what is appended and not on what is there; it waits for the disk, so a campaign leaves it
to a thread (`writer.py`). Any number of processes may read; one orchestrator at a time writes, which the epoch proves
and the database enforces.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from orchestrator.ledger import rows as sums
from orchestrator.ledger import schema
from orchestrator.ledger.address import Address
from orchestrator.ledger.chain import START, Entry, Head, Record, Verified, link, verify
from orchestrator.ledger.database import Connection, Database, Rows
from orchestrator.ledger.errors import (
    Corrupt,
    Exists,
    Fenced,
    Forged,
    LedgerError,
    Missing,
    NewerVersion,
    NotALedger,
    ReadOnly,
    Replaced,
)
from orchestrator.ledger.lock import Holder, in_use
from orchestrator.ledger.pool import Pool
from orchestrator.ledger.sqlite import Sqlite

PAGE = 1000
_SCHEMA = "schema"

T = TypeVar("T")
Where = Path | Address


class Snapshot(NamedTuple):
    """One moment of the campaign: the rows, and the record that they go up to."""

    head: Head
    rows: Rows


@dataclass(frozen=True)
class Request:
    """What another terminal asks of the orchestrator at work."""

    id: int
    at: str
    kind: str
    body: str


class Ledger:
    """Make one with `create` or `open`. Every method raises LedgerErrors and nothing else.

    Where the connection to a database is lost, it is made again and the work is done again, within a bound; nothing
    is lost by that and nothing is done twice.
    """

    def __init__(
        self, where: Where, database: Database, pool: Pool, *, read_only: bool, waits_to_read: bool = True
    ) -> None:
        self.where = where
        self.epoch: int | None = None
        self.last: Head | None = None  # the last record that this session knows of; None before it seized the ledger
        self._sum: tuple[Head, int] | None = None  # of all rows, at which head
        self._database = database
        self._read_only = read_only
        self._waits_to_read = waits_to_read
        self._pool = pool
        self._connection: Connection | None = None
        self._holding = False
        self._no_requests: tuple[tuple[int, int], int] | None = None
        self._asks = 0
        # Held from the look at the head until the session knows the new one: the next thread goes on there.
        self.turn = threading.Lock()

    @classmethod
    def create(cls, where: Where) -> "Ledger":
        """Whole or not at all: one that was killed here leaves something that counts as missing."""
        database = _database(where, read_only=False)
        database.prepare()

        pool = Pool(database)

        def make() -> None:
            with pool.lent() as connection:
                with connection.transaction():
                    _refuse_what_is_there(connection, database)
                database.settle(connection)
                with connection.transaction(writes=True):
                    _refuse_what_is_there(connection, database)
                    database.make_tables(connection)
                    connection.execute(schema.TELL, key=_SCHEMA, value=str(schema.VERSION))
                    connection.execute(schema.MAKE_FENCE)

        try:
            database.attempt(make, patient=False)
        except BaseException:
            pool.close()
            raise
        return cls(where, database, pool, read_only=False)

    @classmethod
    def open(cls, where: Where, *, read_only: bool = False, waits_to_read: bool = True) -> "Ledger":
        """Raises Missing, NotALedger, NewerVersion, Corrupt, Away. One who looks again anyway need not wait for a
        database that went away.
        """
        database = _database(where, read_only=read_only)
        pool = Pool(database)

        def check() -> None:
            with pool.lent() as connection, connection.transaction():
                _check_version(connection, database)

        try:
            database.attempt(check, patient=False)
        except BaseException:
            pool.close()
            raise
        return cls(where, database, pool, read_only=read_only, waits_to_read=waits_to_read)

    def hold(self) -> None:
        """Be the only one at work on the campaign until `close`, on whatever machine others are. Raises Held.

        It is the connection that appends which holds it: who appends holds it still.
        """
        with self.turn:
            self._holding = True
            self.drop()  # one from before holds nothing
            try:
                self._database.attempt(self.connected, patient=False)
            except LedgerError:
                self._holding = False
                raise

    def held_by(self) -> Holder | None:
        """Who works on the campaign, as far as the database knows; a file leaves that to the lock beside it."""
        return self.query(self._database.held_by)

    def close(self) -> None:
        with self.turn:
            if self._connection and self.epoch is not None:
                # A full disk, or one who reads for long: nothing is lost by it.
                with suppress(LedgerError):
                    self._database.attempt(partial(self._database.finish, self._connection), patient=False)
            if self._connection and self._holding:
                self._database.unlock(self._connection)
            self.drop()
            self._pool.close()

    def forget(self) -> bool:
        """Take the whole ledger away, where nothing was ever recorded or asked; False where something was.

        The caller holds it. A database that is away is not waited for.
        """

        def work() -> bool:
            connection = self.connected()
            with connection.transaction(writes=True):
                if _last_request(connection) or self._database.standing(connection).head != START:
                    return False
                self._database.drop_tables(connection)
                return True

        with self.turn:
            return self._database.attempt(work, patient=False)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seize(self, holder: str) -> int:
        """Become the only one who may append. Everything that earlier holders still say is refused."""

        def work(connection: Connection) -> tuple[int, Head]:
            connection.execute(schema.SEIZE, holder=holder)
            ((epoch, _),) = connection.execute(schema.FENCE)
            return epoch, _head(connection)

        with self.turn:
            self.epoch, self.last = self._write(work)
            return self.epoch

    def append(self, entries: Sequence[Entry], rows: Mapping[tuple[str, str], str | None], at: str) -> list[Record]:
        """All of it or nothing, in one transaction; a row of None goes, and the last record seals all rows. Raises
        Fenced, Full, Forged, and other LedgerErrors.
        """
        meant: list[Record] = []
        new = {key: body for key, body in rows.items() if body is not None}
        kept = [{"kind": kind, "id": id_, "body": body} for (kind, id_), body in new.items()]
        gone = [{"kind": kind, "id": id_} for kind, id_ in rows.keys() - new.keys()]
        sum_ = 0

        def work(connection: Connection) -> list[Record]:
            nonlocal meant, sum_
            head, old = self._checked_head(connection, [*rows])
            if meant and head == Head(meant[-1].seq, meant[-1].hash):
                return meant  # an earlier try was committed, only its answer was lost
            if head != self.last:
                # A standby that lacked the last records took over, or somebody wrote beside us: going on would hide it.
                raise Corrupt(f"{self._database.name} does not end with the last record of this session")
            if self._sum is None or self._sum[0] != head:
                self._sum = head, self._checked_sum(connection, Snapshot(head, _rows(connection, ())))
            sum_ = self._sum[1] + sums.added_up(new) - sums.added_up(old)
            meant = link(head, entries, at, self.epoch or 0, sums.digest(sum_))
            connection.write([vars(record) for record in meant], kept, gone)
            return meant

        if rows and not entries:
            raise ValueError("rows change with an event, which seals them")
        with self.turn:
            written = self._write(work)
            if written:
                self.last = Head(written[-1].seq, written[-1].hash)
                self._sum = self.last, sum_
        return written

    def read(self, after: int = 0, limit: int | None = None, kinds: Collection[str] | None = None) -> Iterator[Record]:
        """In order, page by page, each in a transaction of its own: a slow reader holds up nobody.

        What is appended meanwhile is read too; a limit of `head().seq - after` ends at that head.
        """
        if kinds is not None and not kinds:
            return
        statement, values = schema.page(kinds)
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            page = [Record(*row) for row in self.query(_all(statement, after=after, size=size, **values))]
            yield from page
            if len(page) < size:
                return
            after = page[-1].seq
            limit = None if limit is None else limit - size

    def rows(self, *kinds: str) -> Rows:
        """Of these kinds, in one look; without any, of all."""
        return self.query(lambda connection: _rows(connection, kinds))

    def row(self, kind: str, name: str) -> str | None:
        """One of them, without the others; None where there is none."""
        found = self.query(_all(schema.ROW, kind=kind, id=name))
        return str(found[0][0]) if found else None

    def rows_named(self, kind: str, names: Sequence[str]) -> dict[str, str]:
        """Those of them that there are."""
        return dict(_named(lambda statement, **values: self.query(_all(statement, **values)), kind, names))

    def each_row(self, kind: str) -> Iterator[tuple[str, str]]:
        """Names and bodies in the order of their names, page by page: they may be too many to be held at once. Each
        page is of a moment of its own.
        """
        after = ""
        while page := self.query(_all(schema.ROWS_AFTER, kind=kind, after=after, size=PAGE)):
            yield from page
            after = page[-1][0]

    def snapshot(self, *, checked: bool = True) -> Snapshot:
        """Rows and head of one moment, whatever the writer does meanwhile. Raises Forged for rows that the last record
        does not seal, unless it is told not to check.
        """

        def work(connection: Connection) -> Snapshot:
            seen = Snapshot(_head(connection), _rows(connection, ()))
            if checked:
                found = seen.head, self._checked_sum(connection, seen)
                self._sum = self._sum or found
            return seen

        return self.query(work)

    def check(self, seen: Snapshot) -> int:
        """The sum of rows that were seen, which the record at their head seals. Raises Forged."""
        return self.query(lambda connection: self._checked_sum(connection, seen))

    def glance(self, kinds: Collection[str], more: Callable[[Rows], Mapping[str, Sequence[str]]]) -> Snapshot:
        """All rows of some kinds, those of others that `more` names once it has seen them, and the head: of one moment,
        like a snapshot.
        """

        def work(connection: Connection) -> Snapshot:
            rows = _rows(connection, tuple(kinds))
            for kind, names in more(rows).items():
                rows |= {(kind, name): body for name, body in _named(connection.execute, kind, names)}
            return Snapshot(_head(connection), rows)

        return self.query(work)

    def give_up(self) -> None:
        """For any thread: wait no longer for a database that is away, now and later. What waits for it raises Away."""
        self._database.give_up()

    def head(self) -> Head:
        return self.query(_head)

    def has(self, head: Head) -> bool:
        """Whether this record is in it, at its place."""
        return self.query(lambda connection: _has(connection, head))

    def holder(self) -> tuple[int, str]:
        """The current epoch, and who seized the ledger for it."""
        ((epoch, holder),) = self.query(_all(schema.FENCE))
        return epoch, holder

    def ask(self, kind: str, body: str, at: str, of: Head | None = None) -> int:
        """Leave a request for the orchestrator at work; needs no epoch. Raises Replaced where `of` is no record of
        this ledger: what was asked was meant for another.
        """
        seen: int | None = None
        request = {"at": at, "kind": kind, "body": body}

        def work(connection: Connection) -> int:
            nonlocal seen
            self._database.standing(connection)  # in turn with others who write: no number is seen before a lower one
            if seen is not None:
                ((known,),) = connection.execute(schema.ASKED, after=seen, **request)
                if known is not None:
                    return int(known)  # an earlier try was committed, only its answer was lost
            if of is not None and not _has(connection, of):
                raise Replaced(f"{self._database.name} is another campaign than the one that this was asked of")
            seen = _last_request(connection)
            connection.execute(schema.ASK, id=seen + 1, **request)
            return seen + 1

        with self.turn:
            self._asks += 1
            return self._write(work)

    def requests(self, after: int = 0) -> list[Request]:
        """Asked at each turn of the loop: nothing is read while nobody else has written."""
        change = self._last_change()
        if change is not None and (change, after) == self._no_requests:
            return []
        found = [Request(*row) for row in self.query(_all(schema.REQUESTS, after=after))]
        # What came since is not of this change, which is from before the reading.
        self._no_requests = None if found or change is None else (change, after)
        return found

    def _last_change(self) -> tuple[int, int] | None:
        """The database's number leaves out what our own connection wrote, so ours are counted beside it."""
        with self.turn:
            if self._connection is None:
                return None
            connection = self._connection
            number = self._database.attempt(lambda: self._database.last_change(connection))
            return None if number is None else (number, self._asks)

    def verify(self, head: Head | None = None) -> Verified:
        """Walk the whole chain; with a head that was kept, prove that it is on it. Raises ChainBroken."""
        return verify(self.read(), head)

    def _checked_sum(self, connection: Connection, seen: Snapshot) -> int:
        last = _record(connection, seen.head) if seen.head != START else None
        return sums.checked(seen.rows, last, self._database.name)

    def _checked_head(self, connection: Connection, rows: Sequence[tuple[str, str]]) -> tuple[Head, Rows]:
        """The last record, once it is sure that we may follow it, and some rows as they are before."""
        epoch, holder, head, found = self._database.standing(connection, rows)
        if self.epoch is None:
            raise Fenced(f"{self._database.name} was opened without seizing it; seize it before appending")
        if epoch != self.epoch:
            raise Fenced(f"another orchestrator ({holder}) has taken over this campaign; this one must stop")
        return head, found

    def _write(self, work: Callable[[Connection], T]) -> T:
        """For a caller that has the turn."""
        if self._read_only:
            raise ReadOnly(f"{self._database.name} was opened for reading only")

        def transact() -> T:
            connection = self.connected()
            try:
                with connection.transaction(writes=True):
                    return work(connection)
            finally:
                if connection.is_lost:
                    self.drop()

        return self._database.attempt(transact)

    def connected(self) -> Connection:
        """The one that writes, kept: it is the one that holds the campaign."""
        if self._connection is None:
            connection = self._pool.take()
            try:
                if self._holding and not self._database.lock(connection):
                    raise in_use(self._database.held_by(connection))
            except BaseException:
                self._pool.discard(connection)
                raise
            self._connection = connection
        return self._connection

    def drop(self) -> None:
        """Not back to the others: it may hold the campaign."""
        if self._connection:
            self._pool.discard(self._connection)
            self._connection = None
            self._no_requests = None  # the next one counts changes in its own way

    def query(self, work: Callable[[Connection], T]) -> T:
        def transact() -> T:
            with self._pool.lent() as connection, connection.transaction():
                return work(connection)

        return self._database.attempt(transact, patient=self._waits_to_read)


def _database(where: Where, *, read_only: bool) -> Database:
    if isinstance(where, Path):
        return Sqlite(where, read_only=read_only)
    # Only who keeps a ledger there pays for loading it.
    from orchestrator.ledger.postgres import Postgres

    return Postgres(where, read_only=read_only)


def _all(statement: str, **values: object) -> Callable[[Connection], list[tuple[Any, ...]]]:
    return lambda connection: connection.execute(statement, **values)


def _last_request(connection: Connection) -> int:
    ((number,),) = connection.execute(schema.LAST_REQUEST)
    return int(number)


def _head(connection: Connection) -> Head:
    last = connection.execute(schema.LAST)
    return Head(*last[0]) if last else START


def _has(connection: Connection, head: Head) -> bool:
    record = _record(connection, head)
    return record is not None and record.hash == head.hash


def _record(connection: Connection, head: Head) -> Record | None:
    """The one at its place, or the next one that there is."""
    statement, _ = schema.page(None)
    return next((Record(*row) for row in connection.execute(statement, after=head.seq - 1, size=1)), None)


def _rows(connection: Connection, kinds: Sequence[str]) -> Rows:
    statement, values = schema.rows_of(kinds) if kinds else (schema.ROWS, {})
    found = connection.execute(statement, **values)
    rows = {(kind, id_): body for kind, id_, body in found}
    if len(rows) < len(found):
        raise Forged("the ledger has a row twice, which its own table refuses; go back to a copy")
    return rows


def _named(execute: Callable[..., list[tuple[Any, ...]]], kind: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for begun in range(0, len(names), PAGE):
        statement, values = schema.rows_named(names[begun : begun + PAGE])
        yield from execute(statement, kind=kind, **values)


def _refuse_what_is_there(connection: Connection, database: Database) -> None:
    if not database.is_empty(connection):
        raise Exists(f"{database.name} is there already; open it, or name another")


def _check_version(connection: Connection, database: Database) -> None:
    if database.is_empty(connection):
        raise Missing(f"{database.name} is empty; start a campaign first")
    if not database.is_ours(connection):
        raise NotALedger(f"{database.name} is not a ledger of blastdoor; name another")
    told = connection.execute(schema.TOLD, key=_SCHEMA)
    if not told or not told[0][0].isdecimal():
        raise NotALedger(f"{database.name} does not say its version; name another")
    if (version := int(told[0][0])) > schema.VERSION:
        raise NewerVersion(database.name, version, schema.VERSION)
    if version < schema.VERSION:
        raise NotALedger(f"{database.name} was begun by an earlier version; finish it with that one")
