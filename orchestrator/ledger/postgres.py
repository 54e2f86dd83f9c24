"""All that is particular to PostgreSQL: one schema a campaign, a lock that holds across hosts, connections that die.

A COMMIT whose answer was lost may have happened. So nothing here is simply repeated: the connection is made again, and
the work looks first whether it is done (see `Ledger.append`, which the chain tells).
"""

import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_exponential,
)
from tenacity.stop import stop_base

from orchestrator.ledger.address import Address
from orchestrator.ledger.chain import START, Head
from orchestrator.ledger.database import Connection, Key, Standing
from orchestrator.ledger.errors import Away, Held, LedgerError, ReadOnly
from orchestrator.ledger.lock import UNKNOWN, Holder, introduced, introduction
from orchestrator.ledger.postgres_connection import Driver, PostgresConnection
from orchestrator.ledger.postgres_errors import translated
from orchestrator.ledger.postgres_tables import MARK, statements
from orchestrator.ledger.schema import FENCE, LAST, TELL, TOLD, make_tables

T = TypeVar("T")

# How long a database may be away before that is an error. Nothing is begun meanwhile, for whatever is begun waits until
# its intent is there; what runs goes on, and what comes of it waits to be written.
PATIENCE_S = 600.0
# Another that came while we were away may let go of the campaign again, without having taken it over.
HELD_S = 10.0
# Who was killed a moment ago is still connected until the server sees it; who is known to be dead, for as long.
_GRACE_S = 1.0
_DEAD_S = 60.0
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")

# A host that answers no more is noticed by either side within seconds, instead of hours.
_CLIENT = {
    "application_name": "blastdoor",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 8000,
}
_SERVER = {
    "client_encoding": "UTF8",
    "idle_in_transaction_session_timeout": "5s",  # one that froze half way lets go of the fence
    "lock_timeout": "8s",
    "statement_timeout": "60s",
    "synchronous_commit": "on",
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 2,
}

# A statement of its own: one that waited for the lock reads the rest as it was before the wait.
_TAKE_FENCE = f"{FENCE} FOR UPDATE"
_ROWS = (
    "SELECT kind, id, body FROM projection JOIN unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) AS named (k, i)"
    ' ON kind = k COLLATE "C" AND id = i COLLATE "C"'
)
_HOLDER = "holder"
_COUNT = (
    "SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = :schema"
)
_ABOUT = (
    "SELECT obj_description(oid, 'pg_namespace'), has_schema_privilege(oid, 'USAGE')"
    " FROM pg_catalog.pg_namespace WHERE nspname = :schema"
)
_TRY = "SELECT pg_try_advisory_lock(:key)"
_UNLOCK = "SELECT pg_advisory_unlock(:key)"
_LOCKED = (
    "SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())"
    " AND (CAST(classid AS bigint) << 32) | CAST(objid AS bigint) = :key"
)


class Postgres:
    """A campaign's schema in a database that may hold many."""

    def __init__(self, address: Address, *, read_only: bool = False) -> None:
        self._schema = address.schema
        self._given = _parsed(address)
        self._secrets = [str(self._given[key]) for key in _SECRETS if self._given.get(key)]
        self._key = _lock_key(address.campaign)
        self.database = database_name(address)
        self.name = f"campaign {address.campaign[:8]} in the database {self.database}"
        self._given_up = threading.Event()
        self._introduction = introduction()
        settings = {**_SERVER, "search_path": f"{self._schema},pg_temp"}
        if read_only:
            settings["default_transaction_read_only"] = "on"
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        given = {**_CLIENT, **self._given, "options": f"{self._given.get('options', '')} {options}"}
        self._conninfo = make_conninfo(**given)

    def prepare(self) -> None: ...

    def connect(self) -> PostgresConnection:
        driver = Driver.connect(self._conninfo)
        driver.is_hurried = self._given_up.is_set
        encoding = driver.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            driver.close()
            raise LedgerError(f"{self.name} keeps text as {encoding}; make a database with ENCODING 'UTF8'")
        return PostgresConnection(driver)

    def settle(self, connection: Connection) -> None: ...

    def finish(self, connection: Connection) -> None: ...

    def make_tables(self, connection: Connection) -> None:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")
        # An order that depends on the server's language changes when its libraries do.
        for statement in (*make_tables(long="BIGINT", key='TEXT COLLATE "C"'), *statements(self._schema)):
            connection.execute(statement)

    def drop_tables(self, connection: Connection) -> None:
        connection.execute(f"DROP SCHEMA {self._schema} CASCADE")

    def is_empty(self, connection: Connection) -> bool:
        return connection.execute(_COUNT, schema=self._schema) == [(0,)]

    def is_ours(self, connection: Connection) -> bool:
        """Raises ReadOnly: a schema without the right to use it would be passed over, as if it were not there."""
        about = connection.execute(_ABOUT, schema=self._schema)
        if about == [(MARK, False)]:
            raise ReadOnly(f"{self.name} is closed to this user (permission denied); ask its owner for the right")
        return about == [(MARK, True)]

    def standing(self, connection: Connection, rows: Sequence[Key] = ()) -> Standing:
        kinds, ids = [kind for kind, _ in rows], [id_ for _, id_ in rows]
        ((epoch, holder),), last, found = connection.execute_all(_TAKE_FENCE, LAST, _ROWS, kinds=kinds, ids=ids)
        return Standing(
            epoch, holder, Head(*last[0]) if last else START, {(kind, id_): body for kind, id_, body in found}
        )

    def last_change(self, connection: Connection) -> int | None:
        del connection
        return None

    def lock(self, connection: Connection) -> bool:
        began = time.monotonic()
        while True:
            with connection.transaction(writes=True):
                if connection.execute(_TRY, key=self._key) == [(True,)]:
                    connection.execute(TELL, key=_HOLDER, value=self._introduction)
                    return True
                about = connection.execute(TOLD, key=_HOLDER)
            holder = introduced(about[0][0]) if about else None
            patience_s = _DEAD_S if holder and holder.is_dead else _GRACE_S
            if time.monotonic() - began > patience_s:
                if about == [(self._introduction,)]:
                    raise Away("the server still holds the lock of our own connection, which was lost")
                return False
            time.sleep(0.05)

    def unlock(self, connection: Connection) -> None:
        # A connection that is lost holds nothing any more.
        with suppress(psycopg.Error), connection.transaction(writes=True):
            connection.execute(_UNLOCK, key=self._key)

    def held_by(self, connection: Connection) -> Holder | None:
        if connection.execute(_LOCKED, key=self._key) == [(0,)]:
            return None
        about = connection.execute(TOLD, key=_HOLDER)
        return introduced(about[0][0] if about else "") or UNKNOWN

    def attempt(self, work: Callable[[], T], *, patient: bool = True) -> T:
        if not patient:
            try:
                return self._once(work)
            except Away as error:
                line = f"{self.name} cannot be reached ({error}); start it, or mend the setting `ledger`"
                raise Away(line) from None
        try:
            return self._once(work)
        except (Away, Held):
            return self._again(work)

    def give_up(self) -> None:
        self._given_up.set()

    def _again(self, work: Callable[[], T]) -> T:
        """Once at least, also when it was given up: a connection that broke is no database that is away."""
        started = time.monotonic()
        with _heard_by(self._given_up):
            retrying = Retrying(
                stop=Enough() | stop_when_event_set(self._given_up),
                wait=wait_exponential(multiplier=0.05, max=1.0),
                sleep=sleep_using_event(self._given_up),
                retry=retry_if_exception_type((Away, Held)),
                reraise=True,
            )
            try:
                done: T = retrying(self._once, work)
            except Away as error:
                waited = f"{time.monotonic() - started:.1f} s"
                raise Away(
                    f"{self.name} went away and was not back after {waited} ({error}); nothing that was recorded is"
                    " lost: once it is back, go on with blastdoor resume"
                ) from None
        return done

    def _once(self, work: Callable[[], T]) -> T:
        with self._translating():
            return work()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Without the cause: what it says was not looked through for secrets."""
        try:
            yield
        except psycopg.Error as error:
            raise translated(self.name, error, self._secrets) from None
        except UnicodeEncodeError:
            raise LedgerError(f"{self.name} cannot hold text with lone surrogates; escape them first") from None


class Enough(stop_base):
    """One that is away is waited for longer than one that another holds."""

    def __init__(self) -> None:
        self._held_since: float | None = None

    def __call__(self, state: RetryCallState) -> bool:
        now = time.monotonic()
        if state.outcome and isinstance(state.outcome.exception(), Held):
            self._held_since = self._held_since or now
            return now - self._held_since >= HELD_S
        self._held_since = None
        return now - state.start_time >= PATIENCE_S


@contextmanager
def _heard_by(interrupted: threading.Event) -> Iterator[None]:
    """While we wait, no event loop hears of a signal: it is heard here, and by the loop once more afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: interrupted.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def database_name(address: Address) -> str:
    """Which database it is, without who asks and how. Raises LedgerError for a URL that cannot be read."""
    given = _parsed(address)
    host, port = given.get("host") or given.get("hostaddr") or "the local socket", given.get("port")
    return f"{given.get('dbname') or given.get('user') or 'of this user'} on {host}{f':{port}' if port else ''}"


def _parsed(address: Address) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(address.url.get_secret_value())
    except psycopg.Error:
        # What the library says may quote the password.
        raise LedgerError(
            "the ledger's URL cannot be read; write it as postgresql://user:password@host:port/database, with"
            " characters like @ : / ? # % in a name or in the password as %40 and so on"
        ) from None
    if any(not port.isdecimal() for port in str(given.get("port") or "0").split(",") if port):
        raise LedgerError(
            "the port in the ledger's URL is no number; a password with : or / must be written with %3A, %2F"
        )
    return given


def _lock_key(campaign: str) -> int:
    return int.from_bytes(hashlib.sha256(f"blastdoor campaign {campaign}".encode()).digest()[:8], signed=True)
