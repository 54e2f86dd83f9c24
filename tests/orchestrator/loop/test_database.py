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
from tests.orchestrator.loop.scripted import HELDOUT, Point, Scripted, make_site, ran, scripted
from tests.orchestrator.loop.test_combining import base_stage, write_both

pytestmark = pytest.mark.postgres

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9)]


def note_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / ".blastdoor" / NOTE).read_text())


def found(session: Scripted) -> None:
    """What every campaign here comes to, whatever happens to its database."""
    assert (session.nodes[session.champion].params, session.charged) == ({"value": 9}, 5)


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
    await ran(folder, None, {"value": 9}, how=How.COMBINE, stop=(e.MemberEnded, 1))
    assert (await ran(folder, None, {"value": 9}, how=How.RESUME)).champion == "2.1"
    with read_campaign(folder) as reading:
        assert [member.node for member in reading.state.run.pool] == ["1.3", "1.4", "1.1"]
        check_books(reading.ledger)
    assert not (folder / ".blastdoor" / FILE).exists()


async def test_a_file_stays_a_file(
    folder: Path, postgres_server: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is for new campaigns: one that began in a file goes on there."""
    await ran(folder, None, *POINTS, attempts=1)
    monkeypatch.setenv("BLASTDOOR_LEDGER", postgres_server.url())
    await ran(folder, None, *POINTS, how=How.RESUME, attempts=2)
    assert not (folder / ".blastdoor" / NOTE).exists()


@pytest.mark.parametrize("at", [e.SessionStarted, e.Proposed, e.JudgingEnded])
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
    found(await ran(folder, None, *POINTS, how=How.RESUME))


async def test_one_at_a_time_on_any_host(tmp_path: Path, folder: Path, database: PrivatePostgres) -> None:
    """A second is refused also from a copy of the folder, as on another host; one that seizes it fences the first."""
    async with scripted(folder, None, *POINTS, attempts=5) as session:
        copy = shutil.copytree(folder, tmp_path / "copy")
        with pytest.raises(Held, match="pid"):
            await ran(copy, None, *POINTS, how=How.RESUME)

        def seize(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                with Ledger.open(session.bench.book.ledger.where) as other:
                    other.seize("another")

        session.when(e.AttemptEnded, seize)
        with pytest.raises(Fenced):
            await session.run()
    with ledger_of(folder) as ledger:
        assert {record.epoch for record in ledger.read()} == {1}


async def test_whose_ledger_is_elsewhere(
    folder: Path, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says where the ledger is; nothing is begun elsewhere, and a file beside a note is not guessed about."""
    await ran(folder, None, *POINTS, attempts=1)
    with monkeypatch.context() as without:
        without.delenv("BLASTDOOR_LEDGER")
        line = f"is in the database postgres on 127.0.0.1:{database.port}: set BLASTDOOR_LEDGER, or ledger in settings"
        with pytest.raises(LedgerError, match=line), read_campaign(folder):
            pass
        with pytest.raises(LedgerError, match=line):
            await ran(folder, None, *POINTS, how=How.RESUME)
    with psycopg.connect(database.url(), autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS another")
        admin.execute("CREATE DATABASE another")
    line = f"has no campaign {note_of(folder)['campaign'][:8]}; it is in postgres on 127"
    other = Settings(ledger=SecretStr(database.url("another")))
    with pytest.raises(NotALedger, match=line), read_campaign(folder, other):
        pass
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("BLASTDOOR_LEDGER", database.url("another"))
        for how in (How.START, How.RESUME, How.NEW_RUN):
            with pytest.raises(NotALedger, match=line):
                await ran(folder, None, *POINTS, how=how)
    (folder / ".blastdoor" / FILE).touch()
    with pytest.raises(LedgerError, match="has both"), read_campaign(folder):
        pass
    (folder / ".blastdoor" / FILE).unlink()


async def test_killed_while_it_began(folder: Path, database: PrivatePostgres) -> None:
    """A folder that names a campaign that was never made has none: `run` makes it, all else says that there is none."""
    (folder / ".blastdoor").mkdir()
    (folder / ".blastdoor" / NOTE).write_text(f'campaign = "{"7" * 32}"\ndatabase = "x"\nmade = false\n')
    with pytest.raises(CannotOpen, match="no campaign"):
        await ran(folder, None, *POINTS, how=How.RESUME)
    await ran(folder, None, *POINTS, attempts=1)
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
    is_enough = dialect.Enough.__call__

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
        patched.setattr(dialect.Enough, "__call__", noted)
        task = asyncio.create_task(opened())
        assert await asyncio.to_thread(waits.wait, 60)
        task.cancel()
        await asyncio.wait([task])
    database.start()
    assert not any(enough)
    assert task.cancelled() or isinstance(task.exception(), Away)
    await site.backend.close()
    await ran(folder, None, *POINTS, attempts=1)


@pytest.mark.parametrize("text", ["", "no toml", "campaign = 1", 'campaign = "x"\ndatabase = "y"\nmade = true\n'])
def test_strange_notes(tmp_path: Path, database: PrivatePostgres, text: str) -> None:
    """A note that says nothing, or something else, is one line and not a crash; nobody connects to what it names."""
    (tmp_path / NOTE).write_text(text)
    with pytest.raises(LedgerError) as caught:
        open_ledger(tmp_path)
    assert "\n" not in str(caught.value)
    (tmp_path / NOTE).unlink()
