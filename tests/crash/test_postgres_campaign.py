"""Controllers that are real processes, with their ledgers in one database: killed, cut off, beside each other.

Each campaign comes to the same end as one that nobody disturbed, and its events fold to its rows.
"""

import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest

from orchestrator.wiring.ledgers import NOTE
from private_postgres import PrivatePostgres
from tests.crash.nursery import child
from tests.crash.scripted_campaign import checked, make
from tests.crash.test_scripted_campaign import TARGET, calm, endure, seen

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.crash,
    pytest.mark.usefixtures("database"),
    pytest.mark.touching("postgres", "recovery"),
]

ROUNDS = pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.slow)])


def is_begun(folder: Path) -> bool:
    """Whether it is past its opening: who is cut off there is told so at once, and starts again."""
    note = folder / ".blastdoor" / NOTE
    return note.exists() and "made = true" in note.read_text()


@contextmanager
def meanwhile(act: Callable[[], None], seed: int, shortest: float, longest: float) -> Iterator[None]:
    """Act again and again, at moments that are drawn, in a thread of its own."""
    chance, stop = random.Random(seed), threading.Event()

    def go_on() -> None:
        while not stop.wait(chance.uniform(shortest, longest)):
            act()

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_on)
        try:
            yield
        finally:
            stop.set()
        going.result()


@ROUNDS
@pytest.mark.parametrize("kind", ["wide", "deep", "full"])
def test_killed_now_and_then(tmp_path: Path, kind: str, rounds: int) -> None:
    """Killed and resumed at many points: same verdicts, charged once, nothing held, chain and rows whole."""
    expected, points = calm(tmp_path, kind)
    for number in range(rounds):
        folder = make(tmp_path / str(number), kind)
        kills = endure(folder, kind, len(points), random.Random(f"{kind}/{number}"))
        assert seen(kind, checked(folder, kind)) == expected, f"round {number}"
        assert (folder / ".blastdoor" / NOTE).exists()
        assert kills


@ROUNDS
def test_sessions_ended_at_random(tmp_path: Path, database: PrivatePostgres, rounds: int) -> None:
    """The server ends a random session of the controller at random moments: it goes on as if nothing had been."""
    expected, _ = calm(tmp_path, "deep")
    query = (
        "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'blastdoor'"
        " ORDER BY random() LIMIT 1) AS one"
    )
    ended = 0
    with psycopg.connect(database.url(), autocommit=True) as admin:

        def end(folder: Path) -> None:
            nonlocal ended
            if is_begun(folder):
                ended += len(admin.execute(query).fetchall())

        for number in range(rounds):
            folder = make(tmp_path / str(number), "deep")
            with meanwhile(partial(end, folder), number, 0.05, 0.3):
                assert child(TARGET, folder=str(folder), kind="deep") == 0
            assert seen("deep", checked(folder, "deep")) == expected, f"round {number}"
    assert ended >= 2 * rounds


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_server_restarts(tmp_path: Path, database: PrivatePostgres, how: signal.Signals) -> None:
    """A server that stops, or crashes, and comes back under a controller costs it nothing."""
    expected, _ = calm(tmp_path, "deep")
    folder = make(tmp_path / "task", "deep")
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(child, TARGET, folder=str(folder), kind="deep")
        restarts = 0
        while not working.done() and restarts < 3:
            wait([working], 0.02)
            if is_begun(folder):
                database.restart(how)
                restarts += 1
        assert working.result() == 0
    assert restarts
    assert seen("deep", checked(folder, "deep")) == expected


def test_two_controllers_two_campaigns(tmp_path: Path) -> None:
    """Two processes on two campaigns in one database, at once, each killed now and then: neither knows of the other."""
    expected = {kind: calm(tmp_path / kind, kind) for kind in ("deep", "wide")}

    def one(kind: str) -> int:
        folder = make(tmp_path / kind / "task", kind)
        kills = endure(folder, kind, len(expected[kind][1]), random.Random(kind))
        assert seen(kind, checked(folder, kind)) == expected[kind][0]
        return kills

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(one, expected)) >= 2


def test_two_controllers_one_campaign(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While one works, a second that starts from the same folder or a copy of it is refused, and disturbs nothing."""
    expected, _ = calm(tmp_path, "deep")
    folder = make(tmp_path / "task", "deep")
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(child, TARGET, folder=str(folder), kind="deep", gate=str(gate))
        try:
            while not is_begun(folder):
                assert not wait([working], 0.02).done, "it ended before it had begun"
            assert child(TARGET, folder=str(folder), kind="deep") == 1
        finally:
            gate.touch()
        assert working.result() == 0
    assert "Held" in capfd.readouterr().err
    assert seen("deep", checked(folder, "deep")) == expected
