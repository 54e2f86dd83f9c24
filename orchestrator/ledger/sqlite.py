"""All that is particular to SQLite: how a file is opened, what the database itself refuses, what its errors mean."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import (
    ClauseElement,
    Connection,
    Engine,
    Insert,
    QueuePool,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import dialect, insert
from sqlalchemy.exc import DBAPIError

from orchestrator.ledger.chain import GENESIS, START, Head
from orchestrator.ledger.database import Columns, Standing
from orchestrator.ledger.errors import (
    Busy,
    Corrupt,
    Full,
    LedgerError,
    Missing,
    NotALedger,
    ReadOnly,
    translating_os_errors,
)
from orchestrator.ledger.lock import Holder
from orchestrator.ledger.schema import events, fence, metadata, projection

T = TypeVar("T")

APPLICATION = 0x426C4472  # "BlDr": tells our files from other SQLite databases
BUSY_S = 10.0

_PRAGMAS = (
    "foreign_keys = ON",
    "recursive_triggers = ON",
    "trusted_schema = OFF",
    "synchronous = FULL",
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
)

# A BEFORE trigger runs ahead of the conflict that OR REPLACE, OR IGNORE or an upsert would resolve.
_TRIGGERS = (
    "CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events never change'); END",
    "CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events never go'); END",
    f"""CREATE TRIGGER events_follow BEFORE INSERT ON events
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)
      OR NEW.previous IS NOT coalesce((SELECT hash FROM events ORDER BY seq DESC LIMIT 1), '{GENESIS}')
    BEGIN SELECT RAISE(ABORT, 'an event follows the last one'); END""",  # noqa: S608 - a constant of ours
    """CREATE TRIGGER events_fenced BEFORE INSERT ON events
    WHEN NEW.epoch IS NOT (SELECT epoch FROM fence)
    BEGIN SELECT RAISE(ABORT, 'another orchestrator has taken over'); END""",
    """CREATE TRIGGER fence_rises BEFORE UPDATE ON fence WHEN NEW.epoch <= OLD.epoch OR NEW.id <> OLD.id
    BEGIN SELECT RAISE(ABORT, 'an epoch never goes back'); END""",
    "CREATE TRIGGER fence_stays BEFORE DELETE ON fence BEGIN SELECT RAISE(ABORT, 'the fence stays'); END",
    """CREATE TRIGGER fence_once BEFORE INSERT ON fence WHEN EXISTS (SELECT 1 FROM fence)
    BEGIN SELECT RAISE(ABORT, 'there is one fence'); END""",
    "CREATE TRIGGER requests_keep BEFORE UPDATE ON requests BEGIN SELECT RAISE(ABORT, 'requests never change'); END",
    "CREATE TRIGGER requests_stay BEFORE DELETE ON requests BEGIN SELECT RAISE(ABORT, 'requests never go'); END",
    """CREATE TRIGGER requests_new BEFORE INSERT ON requests WHEN EXISTS (SELECT 1 FROM requests WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'requests never change'); END""",
)


class _Prepared:
    """A statement for the driver itself: with every append, SQLAlchemy's own way costs four times as much as SQLite."""

    def __init__(self, statement: ClauseElement) -> None:
        compiled = statement.compile(dialect=dialect())
        self._text = str(compiled)
        self._names = getattr(compiled, "positiontup", None) or ()

    def one(self, connection: Connection) -> tuple[Any, ...]:
        (row,) = connection.connection.cursor().execute(self._text)
        return tuple(row)

    def each(self, connection: Connection, rows: Columns) -> None:
        values = [[row[name] for name in self._names] for row in rows]
        if values:
            connection.connection.cursor().executemany(self._text, values)


def _upsert() -> Insert:
    statement = insert(projection)
    return statement.on_conflict_do_update(
        index_elements=[projection.c.kind, projection.c.id], set_={"body": statement.excluded.body}
    )


# Asked with every append, so in one statement: who may write, and what the next record follows.
_STAND = _Prepared(
    select(fence.c.epoch, fence.c.holder, events.c.seq, events.c.hash).select_from(
        fence.outerjoin(events, events.c.seq == select(func.max(events.c.seq)).scalar_subquery())
    )
)
_APPEND = _Prepared(insert(events))
_SET = _Prepared(_upsert())
_FORGET = _Prepared(delete(projection).where(projection.c.kind == bindparam("k"), projection.c.id == bindparam("i")))


class Sqlite:
    """A file. Who may work on it is settled by the lock beside it, so there is none in here."""

    writing = {"writes": True}  # noqa: RUF012  nobody changes it

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)
        self.waited_s = 0.0

    def prepare(self) -> None:
        make_file(self._path)

    def open_engine(self, *, read_only: bool) -> Engine:
        """Raises Missing and NotALedger."""
        if not self._path.exists():
            raise Missing(f"there is no ledger {self._path}; start a campaign first")
        if not self._path.is_file():
            raise NotALedger(f"{self._path} is not a file; name the ledger itself")
        return open_engine(self._path, read_only=read_only)

    def settle(self, engine: Engine) -> None:
        """Write-ahead logging: readers and the writer do not wait for each other. The file remembers it."""
        with engine.connect() as connection:
            # Straight to the driver, because it must be outside of any transaction.
            connection.connection.cursor().execute("PRAGMA journal_mode = WAL")

    def make_tables(self, connection: Connection) -> None:
        metadata.create_all(connection, checkfirst=False)
        for trigger in _TRIGGERS:
            connection.exec_driver_sql(trigger)
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")

    def drop_tables(self, connection: Connection) -> None:
        metadata.drop_all(connection, checkfirst=False)
        connection.exec_driver_sql("PRAGMA application_id = 0")

    def is_ours(self, connection: Connection) -> bool:
        return connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION

    def is_empty(self, connection: Connection) -> bool:
        unmarked = connection.exec_driver_sql("PRAGMA application_id").scalar() == 0
        return unmarked and connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar() == 0

    def standing(self, connection: Connection) -> Standing:
        epoch, holder, seq, seal = _STAND.one(connection)
        return Standing(epoch, holder, START if seq is None else Head(seq, seal))

    def put(self, connection: Connection, events: Columns, kept: Columns, gone: Columns) -> None:
        for statement, rows in ((_APPEND, events), (_SET, kept), (_FORGET, gone)):
            statement.each(connection, rows)

    def last_change(self, connection: Connection) -> int | None:
        """SQLite's own number leaves out what this connection wrote, so the connection must be the one that writes."""
        (row,) = connection.connection.cursor().execute("PRAGMA data_version")
        return int(row[0])

    def lock(self, connection: Connection) -> bool:
        del connection
        return True

    def unlock(self, connection: Connection) -> None: ...

    def held_by(self, connection: Connection) -> Holder | None:
        del connection
        return None

    def attempt(self, work: Callable[[], T], *, patient: bool = True) -> T:
        """Once: a file does not come back by waiting."""
        del patient
        with translating(self._path):
            return work()


def open_engine(path: Path, *, read_only: bool) -> Engine:
    """A transaction reads one state of the database; with the execution option `writes`, it keeps other writers out."""
    mode = "rw" if not read_only else "ro&immutable=1" if _is_archived(path) else "ro"
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        # Bytes that are no text, which only damage can leave, come out as text that no seal fits.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _is_archived(path: Path) -> bool:
    """On a medium where even a reader could not make the log's index, and no log is there to be read."""
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    # Straight to the driver: SQLAlchemy's way costs as much as a whole insert.
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def make_file(path: Path) -> None:
    """An empty file that only its owner can read; SQLite gives its companions the same mode."""
    with translating_os_errors(path):
        if not path.parent.is_dir():
            raise Missing(f"there is no folder {path.parent}; make it first")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def translating(path: Path) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise _translated(path, error.orig) from error
    except sqlite3.Error as error:
        raise _translated(path, error) from error
    except UnicodeEncodeError as error:
        raise LedgerError(f"{path} cannot hold text with lone surrogates; escape them first") from error


def _translated(path: Path, error: BaseException | None) -> LedgerError:
    code = getattr(error, "sqlite_errorcode", 0)
    # SQLite calls a quota, or a limit on the size of files, a failed write.
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE):
        return Full(path)
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Busy(f"{path} was locked for {BUSY_S:g} s by another process; end that one, or try again")
        case sqlite3.SQLITE_CORRUPT:
            return Corrupt(f"{path} is damaged ({error}); keep it, and go back to a copy")
        case sqlite3.SQLITE_NOTADB:
            return NotALedger(f"{path} is not a ledger of blastdoor; name another file")
        case sqlite3.SQLITE_CANTOPEN:
            return Missing(f"{path} cannot be opened; check that it is there and yours")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return ReadOnly(f"{path} can only be read; check its owner and mode")
    return LedgerError(f"{path}: {error}")
