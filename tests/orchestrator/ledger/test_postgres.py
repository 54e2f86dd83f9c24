"""What holds of a ledger in PostgreSQL beyond what holds of any: lock across hosts, rights, errors, and no secrets."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from urllib.parse import quote

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from orchestrator.ledger import (
    Address,
    Away,
    Busy,
    Corrupt,
    Entry,
    Exists,
    Full,
    Held,
    Ledger,
    LedgerError,
    Missing,
    NotALedger,
    ReadOnly,
)
from orchestrator.ledger import postgres as dialect
from orchestrator.ledger.postgres_errors import redacted, translated
from private_postgres import PrivatePostgres
from tests.orchestrator.ledger.raw import Raw
from tests.orchestrator.ledger.writer import told

pytestmark = pytest.mark.postgres

Admin = psycopg.Connection[tuple[object, ...]]
AT = "2026-01-02T03:04:05+00:00"

_HOLDER = """
import sys, time
from orchestrator.ledger import Ledger
from tests.orchestrator.ledger.writer import found
ledger = Ledger.open(found(sys.argv[1]))
ledger.hold()
sys.stdout.write("held\\n")
sys.stdout.flush()
time.sleep(60)
"""


@pytest.fixture
def kind() -> str:
    return "postgres"


@pytest.fixture
def admin(postgres_server: PrivatePostgres) -> Iterator[Admin]:
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        yield connection


def test_held_and_released(ledger: Ledger, address: Address) -> None:
    """One at a time works on a campaign; others know who it is, and that it left."""
    assert ledger.held_by() is None
    with Ledger.open(address) as first:
        first.hold()
        holder = ledger.held_by()
        assert holder is not None
        assert (holder.pid, holder.host) == (os.getpid(), os.uname().nodename)
        with (
            Ledger.open(address) as second,
            pytest.raises(Held, match=f"pid {os.getpid()} on host .*; stop it or wait"),
        ):
            second.hold()
        assert ledger.held_by() == holder
    assert ledger.held_by() is None
    with Ledger.open(address, read_only=True) as reader:
        assert reader.held_by() is None


@pytest.mark.crash
def test_killed_holder_lets_go(ledger: Ledger, address: Address) -> None:
    """SIGKILL frees the campaign; while it lived, another process was refused, and told who it is."""
    word, environment = told(address)
    command = [sys.executable, "-c", _HOLDER, word]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Held, match=f"pid {holder.pid} "):
            ledger.hold()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    ledger.hold()


def test_insert_and_seizure_take_turns(filled: Ledger, raw: Raw, address: Address, admin: Admin) -> None:
    """Nobody can seize the ledger while an insert is under way, from whatever client that comes."""
    raw.execute("BEGIN")
    raw.execute("INSERT INTO events SELECT 6, 'a', 'k', 'b', 1, hash, 'h', '' FROM events WHERE seq = 5")
    with Ledger.open(address) as other:
        seizing = threading.Thread(target=other.seize, args=("other",))
        seizing.start()
        until = time.monotonic() + 60
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while admin.execute(waiting).fetchone() == (0,):
            assert time.monotonic() < until, "nobody waits"
        assert filled.holder() == (1, "test")
        raw.execute("ROLLBACK")
        seizing.join()
    assert filled.holder() == (2, "other")


def test_requests_are_seen_in_order(ledger: Ledger, address: Address) -> None:
    """Many terminals ask at once: whoever saw a number has seen all below it, and none is left out."""
    seen: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        with Ledger.open(address) as terminal:
            for _ in range(10):
                terminal.ask("pause", "{}", AT)

    def look() -> None:
        while not stop.is_set() or ledger.requests(after=seen[-1] if seen else 0):
            seen.extend(request.id for request in ledger.requests(after=seen[-1] if seen else 0))

    watcher, terminals = threading.Thread(target=look), [threading.Thread(target=ask) for _ in range(4)]
    for thread in (watcher, *terminals):
        thread.start()
    for thread in terminals:
        thread.join()
    stop.set()
    watcher.join()
    assert seen == list(range(1, 41))
    assert all(after == before + 1 for before, after in pairwise(seen))


def test_durable_settings(ledger: Ledger, address: Address, admin: Admin) -> None:
    """A commit waits for the disk, a read sees one moment, a write what was committed last, a reader cannot write."""
    assert admin.execute("SHOW fsync").fetchone() == ("on",)
    wanted = {"synchronous_commit": "on", "full_page_writes": "on", "transaction_isolation": "repeatable read"}
    for read_only in (False, True):
        with closing(dialect.Postgres(address, read_only=read_only).connect()) as connection:
            with connection.transaction():
                found = {name: connection.execute(f"SHOW {name}")[0][0] for name in wanted}
                refusing = connection.execute("SHOW transaction_read_only")
            with connection.transaction(writes=True):
                level = connection.execute("SHOW transaction_isolation")
        assert (found, refusing) == (wanted, [("on" if read_only else "off",)])
        assert level == [("read committed",)]


def test_frozen_before_the_commit(filled: Ledger, raw: Raw) -> None:
    """However many rows were written, the server throws out the session that goes no further, and frees the fence."""
    connection = filled.connected()
    until = time.monotonic() + 60

    def freeze() -> None:
        with connection.transaction(writes=True):
            ((pid,),) = connection.execute("SELECT pg_backend_pid()")
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = '100ms'")
            rows = [{"kind": "a", "id": str(number), "body": ""} for number in range(3)]
            connection.write([], rows, [])
            while raw.execute("SELECT 1 FROM pg_stat_activity WHERE pid = ?", pid):
                assert time.monotonic() < until, "it keeps the fence"

    with pytest.raises(errors.IdleInTransactionSessionTimeout):
        freeze()
    filled.drop()
    assert filled.append([Entry("a", "{}")], {}, AT)[0].seq == 6


def test_what_is_not_a_ledger(address: Address, admin: Admin) -> None:
    """No schema is Missing, an empty one can be filled, another program's is refused and left as it is."""
    with pytest.raises(Missing):
        Ledger.open(address)
    admin.execute(f"CREATE SCHEMA {address.schema}".encode())
    with pytest.raises(Missing, match="is empty"):
        Ledger.open(address)
    Ledger.create(address).close()
    other = replace(address, campaign=uuid.uuid4().hex)
    admin.execute(f"CREATE SCHEMA {other.schema} CREATE TABLE precious (x text)".encode())
    with pytest.raises(NotALedger):
        Ledger.open(other)
    with pytest.raises(Exists):
        Ledger.create(other)
    found = admin.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", (other.schema,)).fetchone()
    assert found == (1,)


def test_two_create_at_once(address: Address) -> None:
    """One of them makes it, whole; the other is told that it is there."""
    ended: list[str] = []

    def make() -> None:
        try:
            Ledger.create(address).close()
            ended.append("made")
        except Exists:
            ended.append("exists")

    makers = [threading.Thread(target=make) for _ in range(3)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(ended) == ["exists", "exists", "made"]
    with Ledger.open(address) as ledger:
        assert ledger.seize("x") == 1


def test_other_encoding(address: Address, postgres_server: PrivatePostgres, admin: Admin) -> None:
    """A database that cannot hold every text is refused, and it is said how to make one that can."""
    admin.execute("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    narrow = replace(address, url=SecretStr(postgres_server.url("narrow")))
    with pytest.raises(LedgerError, match="LATIN1; make a database with ENCODING 'UTF8'"):
        Ledger.create(narrow)


def test_rights(filled: Ledger, address: Address, postgres_server: PrivatePostgres, admin: Admin) -> None:
    """Who was let read can read, and no more; who was let nothing is told to ask for the right."""
    for name in ("reader", "stranger"):
        admin.execute(f"DROP ROLE IF EXISTS {name}".encode())
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'for-tests'".encode())
    admin.execute(f"GRANT USAGE ON SCHEMA {address.schema} TO reader".encode())
    admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO reader".encode())

    def url_of(name: str) -> SecretStr:
        return SecretStr(f"postgresql://{name}:for-tests@127.0.0.1:{postgres_server.port}/postgres")

    with Ledger.open(replace(address, url=url_of("reader")), read_only=True) as reader:
        assert reader.verify().records == 5
        assert reader.held_by() is None
    with Ledger.open(replace(address, url=url_of("reader"))) as reader:
        writes: list[Callable[[], int]] = [lambda: reader.ask("pause", "{}", AT), lambda: reader.seize("x")]
        for write in writes:
            with pytest.raises(ReadOnly, match=r"permission denied .*; ask its owner for the right"):
                write()
    with pytest.raises(ReadOnly, match="permission denied"):
        Ledger.open(replace(address, url=url_of("stranger")))
    admin.execute("DROP OWNED BY reader")


def test_team(address: Address, postgres_server: PrivatePostgres, admin: Admin) -> None:
    """Members of one role, named in the URL, work on one campaign in turn; it belongs to the role."""
    admin.execute("CREATE ROLE team")
    admin.execute("GRANT CREATE ON DATABASE postgres TO team")
    for name in ("ana", "bob"):
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'for-tests' IN ROLE team".encode())
        url = f"postgresql://{name}:for-tests@127.0.0.1:{postgres_server.port}/postgres?options=-c%20role%3Dteam"
        mine = replace(address, url=SecretStr(url))
        with Ledger.create(mine) if name == "ana" else Ledger.open(mine) as ledger:
            ledger.hold()
            ledger.seize(name)
            ledger.append([Entry("by", name)], {}, AT)
            bodies = [record.body for record in ledger.read()]
    assert bodies == ["ana", "bob"]
    admin.execute("DROP OWNED BY team")


def test_several_hosts(filled: Ledger, address: Address, postgres_server: PrivatePostgres) -> None:
    """Of several servers in one URL, the one that answers is taken."""
    secret = quote(str(conninfo_to_dict(address.url.get_secret_value())["password"]), safe="")
    hosts = f"127.0.0.1:1,127.0.0.1:{postgres_server.port}"
    url = f"postgresql://tester:{secret}@{hosts}/postgres?target_session_attrs=read-write"
    with Ledger.open(replace(address, url=SecretStr(url))) as ledger:
        ledger.seize("x")
        assert ledger.append([Entry("a", "{}")], {}, AT)[0].seq == 6


def test_full(filled: Ledger, raw: Raw, address: Address) -> None:
    """A server that finds no space (here it says so in a trigger) is Full; nothing is half done, and then it works."""
    raw.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    )
    raw.execute("CREATE TRIGGER full_disk BEFORE INSERT ON projection EXECUTE FUNCTION full_disk()")
    before = filled.snapshot()
    with pytest.raises(Full, match=r"no space left for campaign .*nothing was lost"):
        filled.append([Entry("a", "{}")], {("a", "b"): "c"}, AT)
    assert filled.snapshot() == before
    raw.execute("DROP TRIGGER full_disk ON projection")
    filled.append([Entry("a", "{}")], {("a", "b"): "c"}, AT)
    assert filled.verify().records == 6


def test_locked_by_another_program(filled: Ledger, raw: Raw, address: Address) -> None:
    """Who keeps the fence for too long is reported, and the append can be repeated."""
    impatient = SecretStr(f"{address.url.get_secret_value()}?options={quote('-c x.y=1')}")
    with Ledger.open(replace(address, url=impatient)) as other:
        other.seize("x")
        with other.connected().transaction(writes=True):
            other.connected().execute("SET lock_timeout = '100ms'")
        raw.execute("BEGIN")
        raw.execute("SELECT epoch FROM fence FOR UPDATE")
        with pytest.raises(Busy, match="end that one, or try again"):
            other.append([Entry("a", "{}")], {}, AT)
        raw.execute("COMMIT")
        assert other.append([Entry("a", "{}")], {}, AT)[0].seq == 6


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (errors.DiskFull, Full),
        (errors.AdminShutdown, Away),
        (errors.CrashShutdown, Away),
        (errors.CannotConnectNow, Away),
        (errors.TooManyConnections, Away),
        (errors.ConnectionFailure, Away),
        (errors.IdleInTransactionSessionTimeout, Away),
        (psycopg.OperationalError, Away),
        (psycopg.InterfaceError, Away),
        (errors.LockNotAvailable, Busy),
        (errors.DeadlockDetected, Busy),
        (errors.QueryCanceled, Busy),
        (errors.InsufficientPrivilege, ReadOnly),
        (errors.ReadOnlySqlTransaction, ReadOnly),
        (errors.InvalidCatalogName, Missing),
        (errors.UndefinedTable, NotALedger),
        (errors.DuplicateTable, Exists),
        (errors.DataCorrupted, Corrupt),
        (psycopg.DataError, LedgerError),
        (errors.SyntaxError, LedgerError),
    ],
)
def test_errors_of_the_driver(error: type[psycopg.Error], wanted: type[LedgerError]) -> None:
    """Every error of PostgreSQL becomes one of ours, in one line; one that we do not know becomes the base."""
    made = translated("the ledger", error("words\nand more, p%ss w/rd, p%25ss%20w%2Frd"), ["p%ss w/rd"])
    assert type(made) is wanted
    assert "\n" not in str(made)
    assert "p%" not in str(made)


def test_redacted() -> None:
    """A secret goes in every form in which a message may have it."""
    assert redacted("a p@ss/w b p%40ss%2Fw c p%40ss/w", ["p@ss/w"]) == "a *** b *** c ***"


CANARY = "hunter-two-of-ten"
BROKEN: list[Callable[[int], str]] = [
    lambda port: f"postgresql://tester:{CANARY}@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://tester:{CANARY}@127.0.0.1:1/postgres",
    lambda port: f"postgresql://tester:{CANARY}@host.invalid/postgres",
    lambda port: f"postgresql://tester:x@{CANARY}@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://tester:x/{CANARY}@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://tester:x?{CANARY}@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://tester:x#{CANARY}@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://tester:{CANARY}%zz@127.0.0.1:{port}/postgres",
    lambda port: f"postgresql://127.0.0.1:{CANARY}/postgres",
    lambda port: f"postgresql://[{CANARY}/postgres",
    lambda port: f"postgresql://tester@127.0.0.1:{port}/postgres?password={CANARY}",
    lambda port: f"postgresql://tester@127.0.0.1:{port}/postgres?passwort={CANARY}",
    lambda port: f"postgresql://tester:{CANARY}@127.0.0.1:{port}/postgres?connect_timeout={CANARY}",
    lambda port: f"postgresql://tester:{CANARY}@127.0.0.1:{port}/postgres?sslmode=verify-full",
    lambda port: f"mysql://tester:{CANARY}@127.0.0.1:{port}/postgres",
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_password_is_never_told(number: int, postgres_server: PrivatePostgres) -> None:
    """Whatever is wrong with the address, the line that says so does not hold the password, nor does its cause."""
    with pytest.raises(LedgerError) as caught:
        Ledger.open(Address(SecretStr(BROKEN[number](postgres_server.port)), "0" * 32))
    error: BaseException | None = caught.value
    assert "\n" not in str(error)
    while error is not None:
        assert CANARY not in f"{error} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_address_does_not_show_its_password(address: Address) -> None:
    """Neither in print nor in a trace of our own."""
    assert "canary" in address.url.get_secret_value()
    assert "canary" not in f"{address} {address!r} {dialect.Postgres(address).name} {vars(address)}"
