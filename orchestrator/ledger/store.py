"""The ledger: events and what they add up to, written together, on disk for good before anyone is told.

It is called straight from the event loop: a commit takes well under a millisecond, and its cost depends on what is
appended and not on what is there. Any number of processes may read; one orchestrator at a time writes, which the
epoch proves and the database enforces.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from orchestrator.ledger import sqlite
from orchestrator.ledger.chain import START, Entry, Head, Record, Verified, link, verify
from orchestrator.ledger.errors import Exists, Fenced, Missing, NewerVersion, NotALedger, ReadOnly
from orchestrator.ledger.schema import VERSION, events, fence, meta, metadata, projection, requests

PAGE = 1000

# Built once: building a statement costs more than running it.
_LAST = select(events.c.seq, events.c.hash).order_by(events.c.seq.desc()).limit(1)
_FENCE = select(fence.c.epoch, fence.c.holder)
_APPEND = insert(events)
_KEEP = sqlite.upsert()
# Asked with every append, so in one statement: who may write, and what the next record follows.
_STAND = select(fence.c.epoch, fence.c.holder, events.c.seq, events.c.hash).select_from(
    fence.outerjoin(events, events.c.seq == select(func.max(events.c.seq)).scalar_subquery())
)
_FORGET = delete(projection).where(projection.c.kind == bindparam("k"), projection.c.id == bindparam("i"))

Rows = dict[tuple[str, str], str]


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
    """Make one with `create` or `open`. Every method raises LedgerErrors and nothing else."""

    def __init__(self, path: Path, engine: Engine, *, read_only: bool) -> None:
        self.path = path
        self.epoch: int | None = None
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._read_only = read_only
        self._connection: Connection | None = None
        self._turn = threading.Lock()

    @classmethod
    def create(cls, path: Path) -> "Ledger":
        """Whole or not at all: one that was killed here leaves a file that counts as missing."""
        sqlite.make_file(path)
        engine = sqlite.open_engine(path, read_only=False)
        try:
            with sqlite.translating(path):
                with engine.connect() as connection, connection.begin():
                    _refuse_what_is_there(connection, path)
                sqlite.use_log(engine)
                with engine.execution_options(writes=True).begin() as connection:
                    _refuse_what_is_there(connection, path)
                    metadata.create_all(connection, checkfirst=False)
                    connection.execute(insert(meta), [{"key": "schema", "value": str(VERSION)}])
                    connection.execute(insert(fence), [{"id": 1, "epoch": 0, "holder": ""}])
                    sqlite.mark(connection)
        except BaseException:
            engine.dispose()
            raise
        return cls(path, engine, read_only=False)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "Ledger":
        """Raises Missing, NotALedger, NewerVersion, Corrupt."""
        if not path.exists():
            raise Missing(f"there is no ledger {path}; start a campaign first")
        if not path.is_file():
            raise NotALedger(f"{path} is not a file; name the ledger itself")
        engine = sqlite.open_engine(path, read_only=read_only)
        try:
            with sqlite.translating(path), engine.begin() as connection:
                _check_version(connection, path)
        except BaseException:
            engine.dispose()
            raise
        return cls(path, engine, read_only=read_only)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seize(self, holder: str) -> int:
        """Become the only one who may append. Everything that earlier holders still say is refused."""
        with self._writing() as connection:
            connection.execute(update(fence).values(epoch=fence.c.epoch + 1, holder=holder))
            epoch = int(connection.execute(select(fence.c.epoch)).scalar_one())
        self.epoch = epoch
        return epoch

    def append(self, entries: Sequence[Entry], rows: Mapping[tuple[str, str], str | None], at: str) -> list[Record]:
        """All of it or nothing, in one transaction; a row of None goes. Raises Fenced, Full, and other LedgerErrors."""
        with self._writing() as connection:
            head = self._checked_head(connection)
            records = link(head, entries, at, self.epoch or 0)
            if records:
                connection.execute(_APPEND, [vars(record) for record in records])
            kept = [{"kind": kind, "id": id_, "body": body} for (kind, id_), body in rows.items() if body is not None]
            if kept:
                connection.execute(_KEEP, kept)
            gone = [{"k": kind, "i": id_} for (kind, id_), body in rows.items() if body is None]
            if gone:
                connection.execute(_FORGET, gone)
        return records

    def read(self, after: int = 0, limit: int | None = None, kinds: Collection[str] | None = None) -> Iterator[Record]:
        """In order, page by page, each in a transaction of its own: a slow reader holds up nobody.

        What is appended meanwhile is read too; a limit of `head().seq - after` ends at that head.
        """
        query = select(events).order_by(events.c.seq)
        if kinds is not None:
            query = query.where(events.c.kind.in_(kinds))
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            with self._reading() as connection:
                page = connection.execute(query.where(events.c.seq > after).limit(size)).all()
            for row in page:
                yield Record(*row)
            if len(page) < size:
                return
            after = page[-1].seq
            limit = None if limit is None else limit - size

    def rows(self, kind: str | None = None) -> Rows:
        with self._reading() as connection:
            return _rows(connection, kind)

    def snapshot(self) -> Snapshot:
        """Rows and head of one moment, whatever the writer does meanwhile."""
        with self._reading() as connection:
            return Snapshot(_head(connection), _rows(connection, None))

    def head(self) -> Head:
        with self._reading() as connection:
            return _head(connection)

    def holder(self) -> tuple[int, str]:
        """The current epoch, and who seized the ledger for it."""
        with self._reading() as connection:
            row = connection.execute(_FENCE).one()
            return row.epoch, row.holder

    def ask(self, kind: str, body: str, at: str) -> int:
        """Leave a request for the orchestrator at work; needs no epoch."""
        with self._writing() as connection:
            done = connection.execute(insert(requests).returning(requests.c.id), {"at": at, "kind": kind, "body": body})
            return int(done.scalar_one())

    def requests(self, after: int = 0) -> list[Request]:
        with self._reading() as connection:
            query = select(requests).where(requests.c.id > after).order_by(requests.c.id)
            return [Request(*row) for row in connection.execute(query)]

    def verify(self, head: Head | None = None) -> Verified:
        """Walk the whole chain; with a head that was kept, prove that it is on it. Raises ChainBroken."""
        return verify(self.read(), head)

    def _checked_head(self, connection: Connection) -> Head:
        """The last record, once it is sure that we may follow it."""
        row = connection.execute(_STAND).one()
        if self.epoch is None:
            raise Fenced(f"{self.path} was opened without seizing it; seize it before appending")
        if row.epoch != self.epoch:
            raise Fenced(f"another orchestrator ({row.holder}) has taken over this campaign; this one must stop")
        return START if row.seq is None else Head(row.seq, row.hash)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self._read_only:
            raise ReadOnly(f"{self.path} was opened for reading only")
        with self._turn, sqlite.translating(self.path):
            # Kept: to take one from the pool and put it back costs as much as a statement.
            self._connection = self._connection or self._writer.connect()
            with self._connection.begin():
                yield self._connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with sqlite.translating(self.path), self._engine.begin() as connection:
            yield connection


def _head(connection: Connection) -> Head:
    row = connection.execute(_LAST).one_or_none()
    return START if row is None else Head(row.seq, row.hash)


def _rows(connection: Connection, kind: str | None) -> Rows:
    query = select(projection.c.kind, projection.c.id, projection.c.body)
    if kind is not None:
        query = query.where(projection.c.kind == kind)
    return {(row.kind, row.id): row.body for row in connection.execute(query)}


def _refuse_what_is_there(connection: Connection, path: Path) -> None:
    if not sqlite.is_empty(connection):
        raise Exists(f"{path} is there already; open it, or name another file")


def _check_version(connection: Connection, path: Path) -> None:
    if sqlite.is_empty(connection):
        raise Missing(f"{path} is empty; start a campaign first")
    if not sqlite.is_ours(connection):
        raise NotALedger(f"{path} is not a ledger of blastdoor; name another file")
    text = connection.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar_one_or_none()
    if text is None or not text.isdecimal():
        raise NotALedger(f"{path} does not say its version; name another file")
    if int(text) > VERSION:
        raise NewerVersion(str(path), int(text), VERSION)
