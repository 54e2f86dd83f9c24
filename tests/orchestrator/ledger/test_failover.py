"""A connection that dies at any moment loses nothing and doubles nothing; a database that stays away is said so."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace
from urllib.parse import urlsplit

import psycopg
import pytest
from pydantic import SecretStr

from orchestrator.ledger import Address, Away, Corrupt, Entry, Fenced, Held, Ledger, canonical
from orchestrator.ledger import postgres as dialect
from orchestrator.ledger import postgres_connection as driver
from private_postgres import PrivatePostgres
from tests.fault_proxy import FaultProxy
from tests.orchestrator.ledger.proxy import Cut, Proxy, proxy
from tests.orchestrator.ledger.raw import Raw

pytestmark = [pytest.mark.postgres, pytest.mark.parametrize("kind", ["postgres"]), pytest.mark.touching("postgres")]

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def line(postgres_server: PrivatePostgres) -> Iterator[Proxy]:
    with proxy(postgres_server.port) as made:
        yield made


@pytest.fixture
def through(address: Address, ledger: Ledger, line: Proxy, postgres_server: PrivatePostgres) -> Iterator[Ledger]:
    """The same ledger, seized again over a line that can be cut."""
    with Ledger.open(replace(address, url=SecretStr(postgres_server.url(port=line.port)))) as opened:
        opened.seize("through")
        yield opened


def terminate(raw: Raw) -> int:
    """End the sessions of every ledger; how many there were."""
    return len(
        raw.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'blastdoor'")
    )


def checked(ledger: Ledger, turns: int) -> None:
    """Every turn once, in order, whole, and with its row."""
    bodies = [record.body for record in ledger.read()]
    assert bodies == [canonical({"turn": turn, "part": part}) for turn in range(turns) for part in range(2)]
    assert ledger.rows() == {("count", "turns"): str(turns)}
    assert ledger.verify().records == 2 * turns


def turn(ledger: Ledger, number: int) -> None:
    entries = [Entry("turn", canonical({"turn": number, "part": part})) for part in range(2)]
    records = ledger.append(entries, {("count", "turns"): str(number + 1), ("gone", str(number)): None}, AT)
    assert [record.seq for record in records] == [2 * number + 1, 2 * number + 2]


def test_terminated_between(ledger: Ledger, raw: Raw) -> None:
    """Sessions that the server ended while nobody used them are no loss: reading and writing go on."""
    records = list(ledger.read())
    for number in range(3):
        assert terminate(raw) >= 1
        assert list(ledger.read()) == records
        assert terminate(raw) >= 1
        records += ledger.append([Entry("a", "{}")], {("n", "1"): str(number)}, AT)
        assert (ledger.rows()["n", "1"], ledger.head().seq) == (str(number), records[-1].seq)
    assert ledger.verify().records == 8


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
def test_commit_in_doubt(through: Ledger, line: Proxy, cut: Cut) -> None:
    """Whether a COMMIT whose answer never came was done is found out, not guessed; twice in a row too."""
    for number in range(6):
        left = iter([cut] * (number % 3))
        line.choose = lambda left=left: next(left, Cut.NOT)  # type: ignore[misc]
        turn(through, number)
    assert line.cuts == 6
    line.choose = lambda: Cut.NOT
    checked(through, 6)


@pytest.mark.parametrize(("events", "rows"), [(1, 0), (1, 1), (3, 20)])
def test_an_append_waits_four_times(through: Ledger, line: Proxy, events: int, rows: int) -> None:
    """For the beginning, the fence with the head, all that is written, and the commit: however much it is."""
    kept: dict[tuple[str, str], str | None] = {("n", str(number)): "{}" for number in range(rows)}
    gone = dict.fromkeys(kept)
    through.snapshot()
    for changed in (kept, kept, gone):
        before = line.turns
        through.append([Entry("a", "{}")] * events, changed, AT)
        assert line.turns - before == 4
        assert through.rows() == {key: body for key, body in changed.items() if body is not None}
    assert through.verify().records == 3 * events


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
def test_request_in_doubt(through: Ledger, line: Proxy, cut: Cut) -> None:
    """A request is left once, also when its answer is lost; the same one asked again is another one."""
    asked = []
    for number in range(3):
        left = iter([cut])
        line.choose = lambda left=left: next(left, Cut.NOT)  # type: ignore[misc]
        asked.append(through.ask("inject", "{}", f"{AT}{number}"))
    line.choose = lambda: Cut.NOT
    assert asked == [1, 2, 3]
    assert [request.at for request in through.requests()] == [f"{AT}{number}" for number in range(3)]
    assert through.ask("inject", "{}", f"{AT}2") == 4


def test_seized_in_doubt(through: Ledger, line: Proxy) -> None:
    """A seizure whose answer was lost may cost an epoch, and never leaves us with an old one."""
    left = iter([Cut.AFTER])
    line.choose = lambda: next(left, Cut.NOT)
    epoch = through.seize("again")
    assert (epoch, "again") == through.holder()
    turn(through, 0)


def test_cut_at_random(through: Ledger, line: Proxy, address: Address) -> None:
    """Cut before or after every other COMMIT, while readers come and go: all is there, once and in order."""
    chance = random.Random(7)
    stop = threading.Event()
    wrong: list[str] = []

    def look() -> None:
        with Ledger.open(address, read_only=True) as reader:
            while not stop.is_set():
                seen = reader.snapshot()
                if seen.head.seq and seen.rows != {("count", "turns"): str(seen.head.seq // 2)}:
                    wrong.append(f"{seen}")

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    line.choose = lambda: chance.choice([Cut.NOT, Cut.NOT, Cut.BEFORE, Cut.AFTER])
    try:
        for number in range(30):
            turn(through, number)
    finally:
        line.choose = lambda: Cut.NOT
        stop.set()
        for reader in readers:
            reader.join()
    assert line.cuts > 8
    assert wrong == []
    checked(through, 30)


def test_terminated_at_random(ledger: Ledger, raw: Raw) -> None:
    """Sessions ended from outside at any moment, within a transaction too."""
    stop, ended = threading.Event(), []

    def harass() -> None:
        for pause in cycle((0.11, 0.23, 0.37)):
            if stop.wait(pause):
                return
            ended.append(terminate(raw))

    before = ledger.head().seq
    harasser = threading.Thread(target=harass)
    harasser.start()
    try:
        turns = 0
        while turns < 60 or sum(ended) <= 3:
            ledger.append([Entry("turn", str(turns))] * 2, {("count", "turns"): str(turns)}, AT)
            turns += 1
    finally:
        stop.set()
        harasser.join()
    written = [record.body for record in ledger.read(after=before)]
    assert written == [str(number) for number in range(turns) for _ in range(2)]
    assert ledger.verify().records == before + 2 * turns
    assert ledger.rows()["count", "turns"] == str(turns - 1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_server_restarts(filled: Ledger, postgres_server: PrivatePostgres, how: signal.Signals) -> None:
    """A server that is restarted, or that crashed and recovered, is waited for; what was appended is there."""
    filled.hold()
    enough = threading.Event()

    def work() -> int:
        number = 0
        while not enough.is_set() or number < 30:
            filled.append([Entry("turn", str(number))], {}, AT)
            number += 1
        return number

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            postgres_server.restart(how)
        finally:
            enough.set()
        turns = working.result()
    assert [record.body for record in filled.read(after=5)] == [str(number) for number in range(turns)]
    assert filled.verify().records == 5 + turns
    assert filled.held_by() is not None


def test_stays_away(filled: Ledger, postgres_server: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the bound it is one typed error in one line that says what to do; when it is back, all is as it was."""
    before, patience_s = filled.snapshot(), dialect.PATIENCE_S
    postgres_server.stop()
    try:
        monkeypatch.setattr(dialect, "PATIENCE_S", 0.2)
        for use in (lambda: filled.append([Entry("a", "{}")], {}, AT), filled.head, lambda: filled.seize("x")):
            with pytest.raises(Away) as caught:
                use()
            line = str(caught.value)
            assert "went away and was not back after " in line
            assert line.endswith("is lost: once it is back, go on with blastdoor resume")
            assert "\n" not in line
        with pytest.raises(Away, match="cannot be reached"):
            Ledger.open(filled.where)
    finally:
        monkeypatch.setattr(dialect, "PATIENCE_S", patience_s)
        postgres_server.start()
    assert filled.snapshot() == before
    assert filled.append([Entry("a", "{}")], {}, AT)[0].seq == 6


@pytest.fixture
def breaking(address: Address, ledger: Ledger, postgres_server: PrivatePostgres) -> Iterator[tuple[Ledger, FaultProxy]]:
    """The same ledger, over a line that breaks, stalls and slows."""
    with FaultProxy(f"tcp://127.0.0.1:{postgres_server.port}") as line:
        url = SecretStr(postgres_server.url(port=urlsplit(line.url).port))
        with Ledger.open(replace(address, url=url)) as opened:
            opened.seize("through")
            yield opened, line


@pytest.mark.parametrize("fault", ["cut", "stall", "break_once"])
def test_T86_a_silence_is_waited_out(
    breaking: tuple[Ledger, FaultProxy], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that answers nobody for two minutes is no end: each turn is there once."""
    ledger, line = breaking
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 120, sleep=time.sleep)
    monkeypatch.setattr(dialect, "time", later)  # so long it has been away when it is asked again
    turn(ledger, 0)
    getattr(line, fault)()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(turn, ledger, 1)
        if fault == "break_once":
            working.result(60)  # there is nothing to heal
        else:
            assert not wait([working], 0.5).done
        line.heal()
        working.result(60)
    checked(ledger, 2)


def test_one_that_never_answers(breaking: tuple[Ledger, FaultProxy], monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes a statement and says nothing, on a line that is well, counts as one that is away."""
    monkeypatch.setattr(driver, "ANSWER_S", 0.5)
    ledger, line = breaking
    turn(ledger, 0)
    line.stall()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(turn, ledger, 1)
        assert not wait([working], 1.0).done, "it is waited for"
        ledger.give_up()
        try:
            assert wait([working], 30).done
        finally:
            line.heal()
        with pytest.raises(Away, match="go on with blastdoor resume"):
            working.result()
    turn(ledger, 1)
    checked(ledger, 2)


def test_given_up_in_a_silence(breaking: tuple[Ledger, FaultProxy], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants an end does not wait long for a server that says nothing; what it says in time still counts."""
    monkeypatch.setattr(driver, "ANSWER_S", 3600.0)
    ledger, line = breaking
    with ThreadPoolExecutor(1) as pool:
        with monkeypatch.context() as long:
            long.setattr(driver, "HURRIED_S", 3600.0)
            line.stall()
            working = pool.submit(turn, ledger, 0)
            wait([working], 0.5)
            ledger.give_up()
            assert not wait([working], 0.5).done
            line.heal()
            working.result(60)
        with monkeypatch.context() as short:
            short.setattr(driver, "HURRIED_S", 0.5)
            line.stall()
            working = pool.submit(turn, ledger, 1)
            try:
                assert wait([working], 120).done
            finally:
                line.heal()
            with pytest.raises(Away, match="go on with blastdoor resume"):
                working.result()
    turn(ledger, 1)
    checked(ledger, 2)


def test_T86_a_slow_line(breaking: tuple[Ledger, FaultProxy]) -> None:
    ledger, line = breaking
    line.slow(50_000)
    for number in range(2):
        turn(ledger, number)
    checked(ledger, 2)


def test_T86_a_signal_ends_the_wait(breaking: tuple[Ledger, FaultProxy]) -> None:
    """Whoever does not want to wait is heard at once, and what hears signals otherwise does so again."""
    ledger, line = breaking
    before = signal.getsignal(signal.SIGINT)
    line.cut()

    def interrupt() -> None:
        while signal.getsignal(signal.SIGINT) is before:  # until it waits, a signal would end the test
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(Away, match="go on with blastdoor resume"):
        turn(ledger, 0)
    interrupting.join()
    assert signal.getsignal(signal.SIGINT) is before
    line.heal()
    turn(ledger, 0)
    checked(ledger, 1)


def test_given_up_before_it_waits(breaking: tuple[Ledger, FaultProxy]) -> None:
    """Who wants an end while the first try still hangs is heard, too: nothing waits after that, now or later."""
    ledger, line = breaking
    line.stall()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(turn, ledger, 0)
        wait([working], 0.5)
        ledger.give_up()
        line.cut()
        _, waiting = wait([working], 120)
        line.heal()
        assert not waiting
        with pytest.raises(Away, match="go on with blastdoor resume"):
            working.result()
    turn(ledger, 0)
    line.break_once()
    turn(ledger, 1)  # a connection that broke is made again
    checked(ledger, 2)


def test_replaced_while_away(through: Ledger, line: Proxy) -> None:
    """One that was replaced while its COMMIT was in doubt is told so, and adds nothing more."""

    def replaced() -> Cut:
        line.choose = lambda: Cut.NOT
        with Ledger.open(through.where) as other:
            other.seize("another")
        return Cut.BEFORE

    line.choose = replaced
    with pytest.raises(Fenced, match="another"):
        turn(through, 0)
    assert through.head().seq == 0


def test_own_epoch_used_by_another(through: Ledger, line: Proxy, ledger: Ledger) -> None:
    """Records that came meanwhile under our own epoch, which nobody else can have, are no reason to add to them."""

    def forged() -> Cut:
        line.choose = lambda: Cut.NOT
        ledger.epoch = through.epoch
        ledger.append([Entry("forged", "{}")], {}, AT)
        return Cut.BEFORE

    line.choose = forged
    with pytest.raises(Corrupt, match="does not end with"):
        turn(through, 0)
    assert [record.kind for record in through.read()] == ["forged"]


def test_lock_is_taken_again(ledger: Ledger, address: Address, raw: Raw) -> None:
    """The lock goes with its connection; the next append takes it again before it writes."""
    ledger.hold()
    assert terminate(raw) >= 1
    ledger.append([Entry("a", "{}")], {}, AT)
    with Ledger.open(address) as other, pytest.raises(Held, match="pid"):
        other.hold()


def test_lock_was_lost(ledger: Ledger, address: Address, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another one took the lock meanwhile, nothing is appended, although the epoch is still ours."""
    monkeypatch.setattr(dialect, "HELD_S", 0.2)
    monkeypatch.setattr(dialect, "_GRACE_S", 0.05)
    ledger.hold()
    head = ledger.head()
    with Ledger.open(address) as other, psycopg.connect(address.url.get_secret_value(), autocommit=True) as admin:
        # It is told to end, and lets go when it does.
        while admin.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'").fetchall():
            time.sleep(0.01)
        other.hold()
        with pytest.raises(Held):
            ledger.append([Entry("a", "{}")], {}, AT)
        assert ledger.head() == head
    ledger.append([Entry("a", "{}")], {}, AT)


def test_lock_of_a_server_that_stands_still(ledger: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of our own connection, which we gave up and the server did not, is no sign of another orchestrator: it
    is waited for like a database that is away.
    """
    ledger.hold()
    ((backend,),) = raw.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
    os.kill(backend, signal.SIGSTOP)
    try:
        with monkeypatch.context() as short:
            short.setattr(driver, "ANSWER_S", 0.5)
            short.setattr(dialect, "_GRACE_S", 0.05)
            short.setattr(dialect, "HELD_S", 0.2)
            short.setattr(dialect, "PATIENCE_S", 1.0)
            with pytest.raises(Away, match="went away and was not back after"):
                ledger.append([Entry("a", "{}")], {}, AT)
    finally:
        os.kill(backend, signal.SIGCONT)
    assert ledger.append([Entry("a", "{}")], {}, AT)[0].seq == 6
    holder = ledger.held_by()
    assert holder
    assert holder.pid == os.getpid()


def test_one_that_died_is_waited_for(
    ledger: Ledger, address: Address, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sees later than we do that a holder is gone: who goes on in its place is not told that it works."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Ledger.open(address) as other:
        other.hold()
        raw.execute("UPDATE meta SET value = replace(value, ?, ?)", f'"pid": {os.getpid()}', f'"pid": {dead.pid}')

        def sleep(_: float) -> None:
            other.close()

        monkeypatch.setattr(dialect, "_GRACE_S", 0.0)
        monkeypatch.setattr(dialect, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
        ledger.hold()
    holder = ledger.held_by()
    assert holder
    assert (holder.pid, holder.is_dead) == (os.getpid(), False)


def test_frozen_half_way(ledger: Ledger, address: Address) -> None:
    """Who froze in the middle of a transaction is thrown out by the server, and the next one can seize."""
    with psycopg.connect(address.url.get_secret_value()) as frozen:
        frozen.execute(f"SET search_path = {address.schema}".encode())
        frozen.execute("SELECT epoch FROM fence FOR UPDATE")
        frozen.execute("SET idle_in_transaction_session_timeout = '300ms'")  # from now on
        with Ledger.open(address) as other:
            assert other.seize("next") == 2
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            frozen.execute("SELECT 1")


def test_one_database_many_campaigns(ledger: Ledger, address: Address) -> None:
    """Neighbours in one database share nothing: not events, rows, requests, epochs, nor the lock."""
    with Ledger.create(replace(address, campaign=uuid.uuid4().hex)) as other:
        ledger.hold()
        other.hold()
        other.seize("x")
        assert other.seize("y") == 2
        other.append([Entry("b", "{}")], {("b", "b"): "b"}, AT)
        other.ask("pause", "{}", AT)
        assert (ledger.head().seq, ledger.rows(), ledger.requests(), ledger.holder()) == (0, {}, [], (1, "test"))
