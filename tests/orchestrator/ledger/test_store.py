"""The ledger keeps what it was told, in order, from one writer at a time, and says in one line what is wrong."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ledger import (
    START,
    Busy,
    Corrupt,
    Entry,
    Exists,
    Fenced,
    Full,
    Head,
    Ledger,
    LedgerError,
    Missing,
    NewerVersion,
    NotALedger,
    ReadOnly,
    Request,
    Where,
    canonical,
)
from orchestrator.ledger import sqlite as dialect
from orchestrator.ledger.database import Rows
from tests.orchestrator.ledger.raw import Raw

AT = "2026-01-02T03:04:05+00:00"
POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture(params=["sqlite", "memory", POSTGRES])
def kind(request: pytest.FixtureRequest) -> str:
    """The ledger that most tests of campaigns have is held to the same contract as those that people have."""
    return str(request.param)


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
def test_only_an_empty_one_is_forgotten(where: Where) -> None:
    """What nothing was recorded in or asked of goes and can be made again; anything else stays as it is."""
    with Ledger.create(where) as made:
        assert made.forget()
    with pytest.raises(Missing):
        Ledger.open(where)
    with Ledger.create(where) as made:
        assert made.ask("pause", "{}", AT) == 1
        assert not made.forget()
        made.seize("test")
        made.append([Entry("a", "{}")], {}, AT)
        assert not made.forget()
        assert (made.head().seq, len(made.requests())) == (1, 1)


def test_append_and_read(ledger: Ledger) -> None:
    """What is appended is read, in order and numbered from one, and folds to what was meant."""
    first = ledger.append([Entry("a", '{"n":1}'), Entry("b", '{"n":2}')], {}, AT)
    second = ledger.append([Entry("a", '{"n":3}')], {}, AT)
    assert list(ledger.read()) == [*first, *second]
    assert [record.seq for record in ledger.read()] == [1, 2, 3]
    assert sum(json.loads(record.body)["n"] for record in ledger.read()) == 6
    assert ledger.head() == Head(3, second[0].hash)
    assert {record.epoch for record in ledger.read()} == {1}


def test_read_some(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """After, limit and kinds choose, across pages too."""
    monkeypatch.setattr("orchestrator.ledger.store.PAGE", 3)
    ledger.append([Entry("even" if number % 2 == 0 else "odd", "{}") for number in range(1, 12)], {}, AT)

    def seqs(*arguments: Any, **named: Any) -> list[int]:
        return [record.seq for record in ledger.read(*arguments, **named)]

    assert seqs() == list(range(1, 12))
    assert seqs(after=4) == list(range(5, 12))
    assert seqs(after=2, limit=4) == [3, 4, 5, 6]
    assert seqs(limit=0) == []
    assert seqs(limit=3) == [1, 2, 3]
    assert seqs(kinds=["even"]) == [2, 4, 6, 8, 10]
    assert seqs(after=4, limit=2, kinds={"odd"}) == [5, 7]
    assert seqs(kinds=[]) == []
    assert seqs(after=11) == []


def test_read_while_appending(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader half way through holds up nobody, and sees what comes meanwhile."""
    monkeypatch.setattr("orchestrator.ledger.store.PAGE", 2)
    ledger.append([Entry("a", "{}")] * 4, {}, AT)
    reader = ledger.read()
    assert next(reader).seq == 1
    ledger.append([Entry("a", "{}")] * 2, {}, AT)
    assert [record.seq for record in reader] == [2, 3, 4, 5, 6]


def test_rows(ledger: Ledger) -> None:
    """Rows are set, replaced and removed with the events that say so, which seal them: never on their own."""
    ledger.append([Entry("a", "{}")], {("node", "1"): "x", ("node", "1.1"): "y", ("account", "1"): "z"}, AT)
    ledger.append([Entry("a", "{}")], {("node", "1"): "new", ("node", "1.1"): None, ("node", "9"): None}, AT)
    with pytest.raises(ValueError, match="with an event"):
        ledger.append([], {("node", "1"): "unsealed"}, AT)
    ledger.append([Entry("a", "{}")], {("only", "row"): ""}, AT)
    assert ledger.rows() == {("node", "1"): "new", ("account", "1"): "z", ("only", "row"): ""}
    assert ledger.rows("node") == {("node", "1"): "new"}
    assert ledger.rows("only", "account") == {("account", "1"): "z", ("only", "row"): ""}
    assert ledger.rows_named("node", ["9", "1"]) == {"1": "new"}
    assert ledger.snapshot().head.seq == 3


def test_a_glance(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of some kinds and those that they name, with the head; in pages where many are named."""
    monkeypatch.setattr("orchestrator.ledger.store.PAGE", 2)
    rows: dict[tuple[str, str], str | None] = {("node", str(number)): "x" for number in range(9)}
    ledger.append([Entry("a", "{}")], {**rows, ("notable", "3"): "", ("run", "1"): "r", ("trial", "3-1"): "t"}, AT)
    seen: list[Rows] = []

    def more(found: Rows) -> dict[str, list[str]]:
        seen.append(found.copy())
        return {"node": ["3", "4", "7", "12"], "trial": []}

    short = {("notable", "3"): "", ("run", "1"): "r"}
    named = {("node", "3"): "x", ("node", "4"): "x", ("node", "7"): "x"}
    assert ledger.glance(["run", "notable"], more) == (ledger.head(), {**short, **named})
    assert seen == [short]


def test_nothing_appended(ledger: Ledger) -> None:
    """An empty ledger has a head of its own, and an append of nothing changes nothing."""
    assert ledger.append([], {}, AT) == []
    assert (ledger.head(), ledger.verify().records, list(ledger.read())) == (START, 0, [])


def test_opened_again(filled: Ledger, where: Where) -> None:
    """Everything is there for the next one who opens it."""
    snapshot = filled.snapshot()
    filled.close()
    with Ledger.open(where) as again:
        assert again.snapshot() == snapshot
        assert again.verify(snapshot.head).head == snapshot.head


def test_any_text(ledger: Ledger) -> None:
    """Every text that is Unicode comes back as it was; other text is refused, and nothing of it is kept."""
    body = canonical({"hostile": "\udcff\0\x1b"})
    ledger.append([Entry("ä'\";--%s$1", body)], {("k'", "\x01?%"): "\U0001f600"}, AT)
    assert [(record.kind, record.body) for record in ledger.read()] == [("ä'\";--%s$1", body)]
    assert ledger.rows() == {("k'", "\x01?%"): "\U0001f600"}
    with pytest.raises(LedgerError, match="surrogates"):
        ledger.append([Entry("a", "{}"), Entry("b", "\udcff")], {}, AT)
    with pytest.raises(LedgerError, match="surrogates"):
        ledger.append([Entry("a", "{}")], {("a", "b"): "\udcff"}, AT)
    assert ledger.verify().records == 1


def test_nul(ledger: Ledger, kind: str) -> None:
    """A file keeps even NUL as it is; a database that cannot says so, and keeps nothing of what came with it."""
    append = partial(ledger.append, [Entry("a", "{}"), Entry("nul", "a\0b")], {("k", "\0"): "\0"}, AT)
    if kind != "postgres":
        append()
        assert ([record.body for record in ledger.read()], ledger.rows()) == (["{}", "a\0b"], {("k", "\0"): "\0"})
    else:
        with pytest.raises(LedgerError, match="NUL"):
            append()
        assert (ledger.head(), ledger.rows()) == (START, {})


@pytest.mark.parametrize("kind", ["sqlite"])
def test_private(filled: Ledger, path: Path) -> None:
    """Only its owner can read the ledger and its companions."""
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("ledger*")}
    assert set(modes) >= {"ledger.sqlite3", "ledger.sqlite3-wal"}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("kind", ["sqlite"])
def test_durable_settings(ledger: Ledger, path: Path) -> None:
    """The settings that make a commit durable are on in every connection."""
    names = ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers", "trusted_schema")
    with closing(dialect.Sqlite(path).connect()) as connection:
        found = {name: connection.execute(f"PRAGMA {name}")[0][0] for name in names}
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "trusted_schema": 0,
    }


def test_fenced(where: Where, ledger: Ledger) -> None:
    """When another one seizes the ledger, the older one can append no more, and is told who it was."""
    ledger.append([Entry("a", "{}")], {}, AT)
    with Ledger.open(where) as other:
        assert other.seize("host b, pid 7") == 2
        with pytest.raises(Fenced, match="host b, pid 7"):
            ledger.append([Entry("late", "{}")], {("a", "b"): "c"}, AT)
        other.append([Entry("b", "{}")], {}, AT)
        assert [(record.kind, record.epoch) for record in other.read()] == [("a", 1), ("b", 2)]
        assert other.holder() == (2, "host b, pid 7")
    assert (ledger.rows(), ledger.verify().records) == ({}, 2)
    assert ledger.seize("again") == 3
    ledger.append([Entry("c", "{}")], {}, AT)
    assert ledger.verify().records == 3


def test_append_needs_an_epoch(where: Where, ledger: Ledger) -> None:
    """Who did not seize the ledger cannot append."""
    with Ledger.open(where) as other, pytest.raises(Fenced, match="seize"):
        other.append([Entry("a", "{}")], {}, AT)


def test_a_request_is_seen_at_once(where: Where, ledger: Ledger) -> None:
    """However often nothing was there, and whatever the session itself wrote: what another leaves is seen next time."""
    ledger.append([Entry("a", "{}")], {}, AT)
    for number in range(1, 4):
        assert ledger.requests(after=number - 1) == ledger.requests(after=number - 1) == []
        ledger.append([Entry("a", "{}")], {}, AT)
        assert ledger.requests(after=number - 1) == []
        with Ledger.open(where) as other:
            other.ask("pause", "{}", AT)
        assert [it.id for it in ledger.requests(after=number - 1)] == [number]
        assert [it.id for it in ledger.requests()] == list(range(1, number + 1))
    assert ledger.requests(after=3) == []
    ledger.ask("pause", "{}", AT)
    assert [it.id for it in ledger.requests(after=3)] == [4]


def test_of_no_kind(ledger: Ledger) -> None:
    """One who names no kind at all gets none; that is not the same as leaving the kinds open."""
    ledger.append([Entry("a", "{}"), Entry("b", "{}")], {}, AT)
    assert list(ledger.read(kinds=[])) == []
    assert [it.kind for it in ledger.read(kinds=["b"])] == ["b"]
    assert len(list(ledger.read())) == 2


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_request_beside_a_new_hold(where: Where, ledger: Ledger) -> None:
    """SQLite counts changes for each connection: the count of one that was let go says nothing about the next."""
    assert ledger.requests() == []
    for number in range(1, 6):
        with Ledger.open(where) as other:
            other.ask("pause", "{}", AT)
        ledger.hold()
        assert [it.id for it in ledger.requests(after=number - 1)] == [number]
        assert ledger.requests(after=number) == []


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_request_of_our_own_while_nothing_was_found(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread of this process may leave one between the reading and the note that there was none."""
    ledger.append([Entry("a", "{}")], {}, AT)
    read = Ledger.query

    def late(self: Ledger, work: Any) -> Any:
        found = read(self, work)
        monkeypatch.undo()
        self.ask("pause", "{}", AT)
        return found

    monkeypatch.setattr(Ledger, "query", late)
    assert ledger.requests() == []
    assert [it.id for it in ledger.requests()] == [1]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_nothing_is_read_while_nobody_wrote(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop asks for requests at each turn: that costs next to nothing while there is none."""
    assert ledger.requests() == []
    monkeypatch.delattr(Ledger, "query")
    ledger.append([Entry("a", "{}")], {}, AT)
    assert ledger.requests() == []


def test_requests(where: Where, ledger: Ledger) -> None:
    """Another terminal leaves requests without seizing; they are numbered and kept in order."""
    with Ledger.open(where) as terminal:
        assert [terminal.ask("pause", "{}", AT), terminal.ask("stop", '{"why":"x"}', AT)] == [1, 2]
    assert ledger.requests(after=1) == [Request(2, AT, "stop", '{"why":"x"}')]
    assert len(ledger.requests(0)) == 2
    ledger.append([Entry("a", "{}")], {}, AT)


def test_snapshot_is_one_moment(where: Where, ledger: Ledger) -> None:
    """Beside a busy writer, a reader sees rows and head that belong together, always."""
    stop = threading.Event()
    failed: list[str] = []
    seen: set[int] = set()

    def look() -> None:
        with Ledger.open(where, read_only=True) as reader:
            while not stop.is_set():
                snapshot = reader.snapshot()
                rows = {int(body) for body in snapshot.rows.values()}
                if rows and rows != {snapshot.head.seq}:
                    failed.append(f"{rows} at {snapshot.head.seq}")
                seen.add(snapshot.head.seq)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(1, 5_000):
        if number > 300 and len(seen) > 3:
            break
        rows: dict[tuple[str, str], str | None] = {("row", str(key)): str(number) for key in range(5)}
        ledger.append([Entry("a", "{}")], rows, AT)
    stop.set()
    for reader in readers:
        reader.join()
    assert failed == []
    assert len(seen) > 3


def test_two_threads_append(ledger: Ledger) -> None:
    """Threads of one process may append at once; the chain stays one."""
    threads = [
        threading.Thread(target=lambda: [ledger.append([Entry("a", "{}")] * 2, {}, AT) for _ in range(30)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.verify().records == 240


class _Crowded:
    """A lock that others want: as soon as it is let go, another thread takes it and has done its work."""

    def __init__(self, inner: Any, others: list[Callable[[], object]]) -> None:
        self._inner = inner
        self._others = others

    def __enter__(self) -> None:
        self._inner.acquire()

    def __exit__(self, *_: object) -> None:
        self._inner.release()
        if self._others:
            other = threading.Thread(target=self._others.pop())
            other.start()
            other.join()


def test_another_thread_is_next(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who appends has its turn until the session knows where its ledger ends: the thread that is next goes on there."""
    others: list[Callable[[], object]] = [lambda: ledger.append([Entry("second", "{}")] * 2, {}, AT)]
    monkeypatch.setattr(ledger, "turn", _Crowded(ledger.turn, others))
    ledger.append([Entry("first", "{}")], {}, AT)
    ledger.append([Entry("third", "{}")], {}, AT)
    assert [record.kind for record in ledger.read()] == ["first", "second", "second", "third"]
    assert ledger.verify().records == 4


def test_another_thread_appends_after_the_seizure(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that appends right after a seizure belongs to the new session, not to the one before."""
    others: list[Callable[[], object]] = [lambda: ledger.append([Entry("first", "{}")], {}, AT)]
    monkeypatch.setattr(ledger, "turn", _Crowded(ledger.turn, others))
    epoch = ledger.seize("test again")
    ledger.append([Entry("second", "{}")], {}, AT)
    assert [(record.kind, record.epoch) for record in ledger.read()] == [("first", epoch), ("second", epoch)]


def test_read_only(where: Where, filled: Ledger) -> None:
    """A reader cannot write, and leaves the file as it is."""
    with Ledger.open(where, read_only=True) as reader:
        assert reader.verify().records == 5
        for write in (
            lambda: reader.append([], {}, AT),
            lambda: reader.seize("x"),
            lambda: reader.ask("a", "b", AT),
        ):
            with pytest.raises(ReadOnly):
                write()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_archived(path: Path, filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed ledger in a folder that cannot be written is read, and gets no companions."""
    filled.close()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Ledger.open(path, read_only=True) as reader:
        assert reader.verify().records == 5
        assert list(path.parent.glob("ledger.sqlite3?*")) == []


def test_missing(tmp_path: Path) -> None:
    """No file, no folder, and a file that was never filled are all missing; a folder is no ledger."""
    for name in ("nothing", "no/folder/here"):
        with pytest.raises(Missing):
            Ledger.open(tmp_path / name)
    with pytest.raises(Missing, match="no folder"):
        Ledger.create(tmp_path / "no/folder/here")
    (tmp_path / "empty").touch()
    with pytest.raises(Missing, match="is empty"):
        Ledger.open(tmp_path / "empty")
    with pytest.raises(NotALedger):
        Ledger.open(tmp_path)
    assert not (tmp_path / "nothing").exists()


def test_creation_that_was_cut_short(tmp_path: Path) -> None:
    """Whoever was killed while creating leaves nothing that bars the next one."""
    (tmp_path / "empty").touch()
    with closing(sqlite3.connect(tmp_path / "header")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    for name in ("empty", "header"):
        with Ledger.create(tmp_path / name) as ledger:
            assert ledger.seize("x") == 1


def test_created_once(filled: Ledger, where: Where) -> None:
    """Creating over a ledger, or over anything else, is refused and changes nothing."""
    with pytest.raises(Exists):
        Ledger.create(where)
    assert filled.verify().records == 5


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE precious (x)")
        connection.commit()


def test_other_files(tmp_path: Path) -> None:
    """Another program's database, a text and random bytes are refused and left as they are."""
    other_database(tmp_path / "database")
    (tmp_path / "text").write_text("dear diary\n" * 500)
    (tmp_path / "bytes").write_bytes(os.urandom(20_000))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in before:
        for read_only in (False, True):
            with pytest.raises(NotALedger, match="is not a ledger"):
                Ledger.open(tmp_path / name, read_only=read_only)
        with pytest.raises((NotALedger, Exists)):
            Ledger.create(tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
def test_newer_version(filled: Ledger, where: Where, raw: Raw) -> None:
    """A ledger of a later version is refused in one line that says what to do."""
    raw.execute("UPDATE meta SET value = '7' WHERE key = 'schema'")
    with pytest.raises(NewerVersion) as caught:
        Ledger.open(where)
    expected = "was written by a newer version (schema 7, this one knows 2); upgrade blastdoor"
    assert str(caught.value).endswith(f" {expected}")
    raw.execute("UPDATE meta SET value = 'x'")
    with pytest.raises(NotALedger):
        Ledger.open(where)


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
def test_earlier_version(filled: Ledger, where: Where, raw: Raw) -> None:
    """A ledger from before rows were sealed is refused in one line, by who reads it, too."""
    raw.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    for read_only in (False, True):
        with pytest.raises(NotALedger, match="was begun by an earlier version; finish it with that one"):
            Ledger.open(where, read_only=read_only)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_damaged_pages(filled: Ledger, path: Path) -> None:
    """Overwritten pages are damage, said in one line."""
    for _ in range(50):
        filled.append([Entry("a", canonical({"pad": "x" * 2000}))], {}, AT)
    filled.close()
    data = bytearray(path.read_bytes())
    data[8192:] = os.urandom(len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(Corrupt) as caught, Ledger.open(path) as ledger:
        ledger.verify()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_locked_by_another_program(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who keeps the database locked for too long is reported, and the append can be repeated."""
    monkeypatch.setattr(dialect, "BUSY_S", 0.05)
    with Ledger.open(path) as other, closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match="locked"):
            other.seize("x")
        connection.execute("COMMIT")
        other.seize("x")
        assert len(other.append([Entry("a", "{}")], {}, AT)) == 1


_FILLER = """
import resource, sys
from pathlib import Path
from orchestrator.ledger import Entry, Full, Ledger, canonical
with Ledger.open(Path(sys.argv[1])) as ledger:
    ledger.seize("filler")
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    done = 0
    try:
        while True:
            body = canonical({"pad": "x" * 3000})
            ledger.append([Entry("a", body)] * 3, {("count", "x"): str(done + 3)}, "now")
            done += 3
    except Full as error:
        print(error)
    assert ledger.verify().records == done == int(ledger.rows()["count", "x"]), done
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    ledger.append([Entry("a", "{}")], {("count", "x"): str(done + 1)}, "now")
    print(done)
"""


@pytest.mark.parametrize("kind", ["sqlite"])
def test_full(path: Path, ledger: Ledger) -> None:
    """When no more can be written, the append says so, leaves nothing half done, and works once there is room."""
    run = subprocess.run([sys.executable, "-c", _FILLER, str(path)], check=True, capture_output=True, text=True)
    said, done = run.stdout.splitlines()
    assert said == f"no space left for {path}: free some and resume; nothing was lost"
    assert int(done) > 10
    assert ledger.verify().records == int(done) + 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, Full),
        (sqlite3.SQLITE_IOERR_WRITE, Full),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, Busy),
        (sqlite3.SQLITE_CORRUPT, Corrupt),
        (sqlite3.SQLITE_NOTADB, NotALedger),
        (sqlite3.SQLITE_CANTOPEN, Missing),
        (sqlite3.SQLITE_READONLY, ReadOnly),
        (sqlite3.SQLITE_MISUSE, LedgerError),
    ],
)
def test_errors_of_the_driver(code: int, kind: type[LedgerError]) -> None:
    """Every error of SQLite becomes one of ours; a code that we do not know becomes the base."""
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode = code
    with pytest.raises(LedgerError) as caught, dialect.translating(Path("ledger")):
        raise error
    assert type(caught.value) is kind


def test_somebody_wrote_beside_us(where: Where, ledger: Ledger) -> None:
    """A ledger that does not end where this session left it, as after a fail-over that lost records, is refused."""
    entry = Entry("note", canonical({"text": "one"}))
    ledger.append([entry], {}, AT)
    with closing(Ledger.open(where)) as other:
        other.epoch, other.last = ledger.epoch, other.head()
        other.append([entry], {}, AT)
    with pytest.raises(Corrupt, match="does not end with the last record of this session"):
        ledger.append([entry], {}, AT)
    ledger.verify()
