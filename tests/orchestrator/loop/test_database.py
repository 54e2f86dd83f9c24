"""A campaign whose ledger is in a database: the same campaign, one at a time, also when the database goes away."""

import asyncio
import shutil
import threading
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from orchestrator.domain import events as e
from orchestrator.ledger import Away, Fenced, Held, Ledger, LedgerError, NotALedger
from orchestrator.ledger import postgres as dialect
from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec
from orchestrator.wiring import opening
from orchestrator.wiring.beginning import How, begin
from orchestrator.wiring.ledgers import FILE, NOTE, open_ledger
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import ask, read_campaign
from orchestrator.wiring.resuming import CannotOpen
from private_postgres import PrivatePostgres
from sandbox import Refused
from tests.orchestrator.loop.books import check_books, ledger_of
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import HELDOUT, Point, make_site, scripted, write_task
from tests.orchestrator.loop.test_combining import base_stage, write_both
from tests.orchestrator.loop.test_minimising import WINNER, WORTH, apart, found_by, searched
from tests.orchestrator.loop.test_operators import code_task, history
from tests.orchestrator.loop.test_profiling import Told, flags

pytestmark = pytest.mark.postgres

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9)]


def note_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / ".blastdoor" / NOTE).read_text())


async def test_run_resume_and_ask(folder: Path, database: PrivatePostgres) -> None:
    """All is in the database but bytes and candidates; the folder remembers which, and nothing of how to get in."""
    async with scripted(folder, None, *POINTS, attempts=5) as session:
        session.stop_at(e.AttemptEnded, 3)
        with read_campaign(folder) as reading:
            assert reading.holder is not None
        await session.run()
    assert ask(folder, "pause", {"paused": False}) == 1
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        finished = await session.run()
        assert [event.answer for event in session.of(e.RequestTaken)] == ["going on"]
    with read_campaign(folder) as reading:
        assert (reading.holder, reading.state.champion()) == (None, finished.champion)
        assert finished.champion is not None
        assert finished.champion.params == {"value": 9}
    assert not (folder / ".blastdoor" / FILE).exists()
    assert note_of(folder) == {
        "campaign": note_of(folder)["campaign"],
        "database": f"postgres on 127.0.0.1:{database.port}",
        "made": True,
    }
    for path in (folder / ".blastdoor").rglob("*"):
        assert path.is_dir() or b"canary" not in path.read_bytes(), path


@pytest.mark.usefixtures("database")
async def test_a_combination_stage(tmp_path: Path) -> None:
    """It is stopped while its pool is filled, goes on, and everything of it is in the database, too."""
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        stage.stop_at(e.MemberEnded, 1)
        await stage.run()
    async with scripted(folder, None, {"value": 9}, how=How.RESUME) as stage:
        finished = await stage.run()
        assert finished.champion == stage.bench.state.nodes["2.1"]
    with read_campaign(folder) as reading:
        assert [member.node for member in reading.state.run.pool] == ["1.3", "1.4", "1.1"]
        check_books(reading.ledger)
    assert not (folder / ".blastdoor" / FILE).exists()


@pytest.mark.usefixtures("database")
async def test_hints(tmp_path: Path) -> None:
    """A profile that a database knows of is taken once: a resume goes on by it."""
    folder, script = code_task(tmp_path / "task"), Told()
    async with scripted(folder, script, **flags()) as session:
        session.stop_at(e.AttemptEnded, 3)
        await session.run()
    async with scripted(folder, script, how=How.RESUME) as session:
        await session.run()
        resumed = history(session.bench.state)
    async with scripted(code_task(tmp_path / "whole"), Told(), **flags()) as session:
        await session.run()
        assert history(session.bench.state) == resumed
    assert script.runs == 1


@pytest.mark.usefixtures("database")
async def test_a_winner_taken_apart(folder: Path) -> None:
    """Stopped in the middle it goes on from what the database has, and nothing that was measured is run again."""
    await searched(folder, WINNER)
    async with apart(folder) as session:
        session.stop_at(e.JudgingEnded, 1)
        await session.run()
    async with apart(folder) as session:
        await session.run()
        node, minimal = found_by(session)
        assert node.kept
        assert [(part.where, part.worth) for part in minimal.kept] == WORTH
    with ledger_of(folder) as ledger:
        check_books(ledger)
    assert not (folder / ".blastdoor" / FILE).exists()


async def test_a_file_stays_a_file(
    folder: Path, postgres_server: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is for new campaigns: one that began in a file goes on there."""
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()
    monkeypatch.setenv("BLASTDOOR_LEDGER", postgres_server.url())
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=2) as session:
        await session.run()
    assert not (folder / ".blastdoor" / NOTE).exists()


@pytest.mark.parametrize("at", [e.SessionStarted, e.Proposed, e.TrialEnded, e.JudgingEnded, e.AttemptEnded])
async def test_goes_away(
    folder: Path, database: PrivatePostgres, at: type[e.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends its chambers and says why; once the database is back, a resume comes to the same end."""
    monkeypatch.setattr(dialect, "PATIENCE_S", 0.2)
    async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
        gone = False

        def stop(_: e.Event) -> None:
            nonlocal gone
            if not gone:
                gone = True
                database.stop()

        if at is e.SessionStarted:
            stop(e.SessionEnded(why=""))
        session.when(at, stop)
        try:
            with pytest.raises(Away, match="go on with blastdoor resume"):
                await session.run()
        finally:
            database.start()
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion is not None
        assert (finished.champion.params, session.charged) == ({"value": 9}, 5)


async def test_comes_back_in_time(folder: Path, database: PrivatePostgres) -> None:
    """A server that was restarted under a campaign is not noticed by it."""
    async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
        session.when(e.TrialEnded, lambda _: database.restart())
        finished = await session.run()
        assert finished.champion is not None
        assert (finished.champion.params, session.charged) == ({"value": 9}, 5)


async def test_sessions_are_ended_again_and_again(folder: Path, database: PrivatePostgres) -> None:
    """Whatever is ended after each event, every event is there once: the fold says so after the test."""
    with psycopg.connect(database.url(), autocommit=True) as admin:
        ended = 0

        def end(*_: object) -> None:
            nonlocal ended
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'blastdoor'"
            ended += len(admin.execute(query).fetchall())

        async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
            opening = session.bench.book.ledger.head().seq
            session.bench.book.listeners.append(end)
            finished = await session.run()
            assert [type(event) for event in session.events].count(e.AttemptEnded) == 6
            assert session.bench.book.ledger.head().seq == opening + len(session.events)
        assert finished.champion is not None
        assert ended > 30


async def test_one_at_a_time_on_any_host(tmp_path: Path, folder: Path, database: PrivatePostgres) -> None:
    """A second is refused also from a copy of the folder, as on another host; one that seizes it fences the first."""
    async with scripted(folder, None, *POINTS, attempts=5) as session:
        copy = shutil.copytree(folder, tmp_path / "copy")
        with pytest.raises(Held, match="pid"):
            async with scripted(copy, None, *POINTS, how=How.RESUME):
                pass

        def seize(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                with Ledger.open(session.bench.book.ledger.where) as other:
                    other.seize("another")

        session.when(e.AttemptEnded, seize)
        with pytest.raises(Fenced):
            await session.run()
    with ledger_of(folder) as ledger:
        assert {record.epoch for record in ledger.read()} == {1}


async def test_url_is_missing(folder: Path, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks without the setting is told which database it is, and where to say so."""
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()
    with monkeypatch.context() as without:
        without.delenv("BLASTDOOR_LEDGER")
        line = f"is in the database postgres on 127.0.0.1:{database.port}: set BLASTDOOR_LEDGER, or ledger in settings"
        with pytest.raises(LedgerError, match=line), read_campaign(folder):
            pass
        with pytest.raises(LedgerError, match=line):
            async with scripted(folder, None, *POINTS, how=How.RESUME):
                pass


async def test_another_database(folder: Path, database: PrivatePostgres) -> None:
    """A database that does not have the campaign is not taken for it, nor is the campaign begun again there."""
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()
    with psycopg.connect(database.url(), autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS another")
        admin.execute("CREATE DATABASE another")
    other = Settings(ledger=SecretStr(database.url("another")))
    line = f"has no campaign {note_of(folder)['campaign'][:8]}; it is in postgres on 127"
    with pytest.raises(NotALedger, match=line), read_campaign(folder, other):
        pass
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setenv("BLASTDOOR_LEDGER", database.url("another"))
        for how in (How.START, How.RESUME, How.NEW_RUN):
            with pytest.raises(NotALedger, match=line):
                async with scripted(folder, None, *POINTS, how=how):
                    pass


async def test_killed_while_it_began(folder: Path, database: PrivatePostgres) -> None:
    """A folder that names a campaign that was never made has none: `run` makes it, all else says that there is none."""
    (folder / ".blastdoor").mkdir()
    (folder / ".blastdoor" / NOTE).write_text(f'campaign = "{"7" * 32}"\ndatabase = "x"\nmade = false\n')
    with pytest.raises(CannotOpen, match="no campaign"):
        async with scripted(folder, None, *POINTS, how=How.RESUME):
            pass
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()
    assert (note_of(folder)["campaign"], note_of(folder)["made"]) == ("7" * 32, True)


async def test_an_error_before_the_first_record_leaves_nothing(folder: Path, database: PrivatePostgres) -> None:
    """A refused image leaves neither a folder nor a schema; what was recorded before an error stays."""

    async def refuse(_: ImageSpec) -> Image:
        raise Refused("the image is missing on the engine; build it")

    def left() -> tuple[list[str], list[Path]]:
        with psycopg.connect(database.url()) as admin:
            found = admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'blastdoor%'").fetchall()
        return sorted(name for (name,) in found), sorted(folder.iterdir())

    before, site = left(), make_site(Script())
    with pytest.raises(Refused):
        async with open_campaign(folder, replace(site, bake=refuse)):
            pass
    assert left() == before
    with pytest.raises(ZeroDivisionError):
        async with open_campaign(folder, site):
            raise ZeroDivisionError
    await site.backend.close()
    assert len(left()[0]) == len(before[0]) + 1
    with read_campaign(folder) as reading:
        assert reading.state.opened


async def test_stopped_while_its_first_record_waits(
    folder: Path, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who does not want to wait for a database that went away is heard; the next run takes the place."""
    site, waits, enough = make_site(Script()), threading.Event(), list[bool]()
    is_enough = dialect._Enough.__call__

    def begin_and_lose(*args: Any) -> None:
        begin(*args)
        database.stop()

    def noted(*args: Any) -> bool:
        enough.append(is_enough(*args))
        waits.set()
        return enough[-1]

    async def opened() -> None:
        async with open_campaign(folder, site):
            raise AssertionError("nothing is opened that is not on disk")

    with monkeypatch.context() as patched:
        patched.setattr(opening, "begin", begin_and_lose)
        patched.setattr(dialect, "PATIENCE_S", 40.0)
        patched.setattr(dialect._Enough, "__call__", noted)
        task = asyncio.create_task(opened())
        assert await asyncio.to_thread(waits.wait, 60)
        task.cancel()
        await asyncio.wait([task])
    database.start()
    assert not any(enough)
    assert task.cancelled() or isinstance(task.exception(), Away)
    await site.backend.close()
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()


@pytest.mark.parametrize("text", ["", "no toml", "campaign = 1", 'campaign = "x"\ndatabase = "y"\nmade = true\n'])
def test_strange_notes(tmp_path: Path, database: PrivatePostgres, text: str) -> None:
    """A note that says nothing, or something else, is one line and not a crash; nobody connects to what it names."""
    (tmp_path / NOTE).write_text(text)
    with pytest.raises(LedgerError) as caught:
        open_ledger(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / NOTE).unlink()


async def test_both(folder: Path, database: PrivatePostgres) -> None:
    """A folder with a file and a note is not guessed about."""
    async with scripted(folder, None, *POINTS, attempts=1) as session:
        await session.run()
    (folder / ".blastdoor" / FILE).touch()
    with pytest.raises(LedgerError, match="has both"), read_campaign(folder):
        pass
    (folder / ".blastdoor" / FILE).unlink()


async def test_two_campaigns_in_turn(tmp_path: Path, database: PrivatePostgres) -> None:
    """Two campaigns of one process in one database, event by event beside each other."""
    folders = [write_task(tmp_path / name) for name in ("one", "two")]
    async with scripted(folders[0], None, *POINTS, attempts=3) as one, scripted(folders[1], None, *POINTS) as two:
        first, second = await one.run(), await two.run()
    assert (first.champion and first.champion.params) == {"value": 7}
    assert (second.champion and second.champion.params) == {"value": 9}
    for folder in folders:
        with ledger_of(folder) as ledger:
            check_books(ledger)
