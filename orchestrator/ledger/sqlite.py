"""All that is particular to SQLite: how a file is opened, what the database itself refuses, what its errors mean."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from orchestrator.files import sync
from orchestrator.ledger.chain import GENESIS, START, Head
from orchestrator.ledger.database import Columns, Connection, Key, Standing
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
from orchestrator.ledger.schema import APPEND, FORGET, ROW, SET, TABLES, make_tables

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


# Asked with every append, so in one statement: who may write, and what the next record follows.
_STAND = (
    "SELECT fence.epoch, fence.holder, events.seq, events.hash"
    " FROM fence LEFT JOIN events ON events.seq = (SELECT max(seq) FROM events)"
)


# Views, tables that are modules, and columns that are computed: we make none.
_MADE_UP = (
    "SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%')"
    " + (SELECT count(*) FROM sqlite_master AS made, pragma_table_xinfo(made.name) AS col"
    " WHERE made.type = 'table' AND made.sql NOT LIKE 'CREATE VIRTUAL%' AND col.hidden <> 0)"
)


_NO_TEXT = "Could not decode to UTF-8"


def _whatever_it_is(raw: bytes) -> str:
    """Bytes that are no text come out as text that no seal fits."""
    return raw.decode("utf-8", "surrogateescape")


class SqliteConnection:
    """A file that stays open: nothing loses it."""

    is_lost = False

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver
        self.close = driver.close

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[None]:
        """One that writes keeps other writers out from the start, so that it never finds out too late."""
        self._driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        try:
            yield
            self._driver.commit()
        except BaseException:
            self._driver.rollback()
            raise

    def execute(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        try:
            return self._driver.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if self._driver.text_factory is _whatever_it_is or not str(error).startswith(_NO_TEXT):
                raise
        # Only damage leaves bytes that are no text, so it is asked for when it is met: it makes reading a third slower.
        self._driver.text_factory = _whatever_it_is
        return self._driver.execute(statement, values).fetchall()

    def execute_all(self, *statements: str, **values: object) -> list[list[tuple[Any, ...]]]:
        return [self.execute(statement, **values) for statement in statements]

    def write(self, events: Columns, kept: Columns, gone: Columns) -> None:
        for statement, rows in ((APPEND, events), (SET, kept), (FORGET, gone)):
            self._driver.executemany(statement, rows)


class Sqlite:
    """A file. Who may work on it is settled by the lock beside it, so there is none in here."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self.name = str(path)

    def prepare(self) -> None:
        make_file(self._path)

    def connect(self) -> SqliteConnection:
        """Raises Missing and NotALedger."""
        if not self._path.exists():
            raise Missing(f"there is no ledger {self._path}; start a campaign first")
        if not self._path.is_file():
            raise NotALedger(f"{self._path} is not a file; name the ledger itself")
        _refuse_odd_companions(self._path)
        mode = "rw" if not self._read_only else "ro&immutable=1" if _is_archived(self._path) else "ro"
        driver = sqlite3.connect(
            f"file:{quote(str(self._path.absolute()))}?mode={mode}",
            uri=True,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        try:
            for pragma in _PRAGMAS:
                driver.execute(f"PRAGMA {pragma}")
        except BaseException:
            driver.close()
            raise
        return SqliteConnection(driver)

    def settle(self, connection: Connection) -> None:
        """Write-ahead logging: readers and the writer do not wait for each other. The file remembers it."""
        connection.execute("PRAGMA journal_mode = WAL")

    def finish(self, connection: Connection) -> None:
        """SQLite itself does it when the last connection is closed; readers may keep theirs for days."""
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def make_tables(self, connection: Connection) -> None:
        # SQLite's own integers are as long, and only by this name are they the key of the table itself.
        for statement in (*make_tables(long="INTEGER", key="TEXT"), *_TRIGGERS):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")

    def drop_tables(self, connection: Connection) -> None:
        for table in TABLES:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA application_id = 0")

    def is_ours(self, connection: Connection) -> bool:
        """In a file of somebody else, what looks like a table may be a program that never ends."""
        is_marked = connection.execute("PRAGMA application_id") == [(APPLICATION,)]
        return is_marked and connection.execute(_MADE_UP) == [(0,)]

    def is_empty(self, connection: Connection) -> bool:
        zero = [(0,)]
        return connection.execute_all("PRAGMA application_id", "SELECT count(*) FROM sqlite_master") == [zero, zero]

    def standing(self, connection: Connection, rows: Sequence[Key] = ()) -> Standing:
        ((epoch, holder, seq, seal),) = connection.execute(_STAND)
        found = {(kind, id_): body for kind, id_ in rows for (body,) in connection.execute(ROW, kind=kind, id=id_)}
        return Standing(epoch, holder, START if seq is None else Head(seq, seal), found)

    def last_change(self, connection: Connection) -> int | None:
        """SQLite's own number leaves out what this connection wrote, so the connection must be the one that writes."""
        ((number,),) = connection.execute("PRAGMA data_version")
        return int(number)

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

    def give_up(self) -> None: ...


def _refuse_odd_companions(path: Path) -> None:
    """One who opens a pipe waits until somebody writes into it."""
    for end in ("-wal", "-shm", "-journal"):
        beside = path.with_name(f"{path.name}{end}")
        if beside.exists() and not beside.is_file():
            raise NotALedger(f"{beside} is not a file; move it away")


def _is_archived(path: Path) -> bool:
    """On a medium where even a reader could not make the log's index, and no log is there to be read."""
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def make_file(path: Path) -> None:
    """An empty file that only its owner can read; SQLite gives its companions the same mode."""
    with translating_os_errors(path):
        if not path.parent.is_dir():
            raise Missing(f"there is no folder {path.parent}; make it first")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        sync(path.parent)


@contextmanager
def translating(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error
    except UnicodeEncodeError as error:
        raise LedgerError(f"{path} cannot hold text with lone surrogates; escape them first") from error


def _translated(path: Path, error: sqlite3.Error) -> LedgerError:
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
