"""A database that is away: its campaign says so, the page goes on for all others, and the server ends when told."""

import asyncio
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.ledger import LedgerError
from orchestrator.views.page.followed import Followed
from private_postgres import PrivatePostgres
from tests.orchestrator.loop.scripted import scripted, write_task
from tests.orchestrator.views.campaign.conftest import Stage, stage
from tests.orchestrator.views.page.conftest import Site, Stream, asked, followed

__all__ = ["stage"]  # a fixture, of commands

# Far less than a campaign waits for its database, and far more than a page should.
HANG_S = 120


@pytest.mark.postgres
async def test_a_database_that_is_away_keeps_nobody_waiting(tmp_path: Path, database: PrivatePostgres) -> None:
    """Each of those who ask is told, more than the server has threads, and a server can end; then it can be
    looked at again.
    """
    async with scripted(write_task(tmp_path / "task"), None, {"value": 3}) as session:
        await session.run()
    async with asyncio.timeout(HANG_S), Site(tmp_path) as site, Site(tmp_path) as other:
        await other.campaign("/board")
        target, told = await site.at("/board"), Stream(site, await site.at("/updates"))
        await told.next("again")
        database.stop()
        try:
            assert "cannot be reached" in await told.next("failed")
            asks = (asked(site.app, target, headers=site.headers) for _ in range(40))
            assert {answer.status for answer in await asyncio.gather(*asks)} == {503}
            waiting = [asyncio.create_task(asked(other.app, target, headers=other.headers)) for _ in range(8)]
            await other.server.close()
            for task in waiting:
                task.cancel()
        finally:
            database.start()
        await told.next("again")
        assert (await asked(site.app, target, headers=site.headers)).status == 200
        await told.leave()


async def test_one_that_does_not_answer_holds_up_no_other(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ask for it: more than the server answers at a time."""
    stage.write()
    shutil.copytree(stage.folder, tmp_path / "other")
    async with asyncio.timeout(HANG_S), Site(stage.folder, tmp_path / "other") as site:
        stuck, other = (f"/api/campaign/{row['id']}" for row in await site.get("/api/campaigns"))
        for target in (stuck, other):
            await site.get(target)
        gate, at_work, poll = threading.Event(), asyncio.Event(), Followed.poll
        loop = asyncio.get_running_loop()

        def hang(it: Followed) -> object:
            if it.found.id in stuck:
                loop.call_soon_threadsafe(at_work.set)
                gate.wait(HANG_S)
            return poll(it)

        monkeypatch.setattr(Followed, "poll", hang)
        waiting = [asyncio.create_task(asked(site.app, stuck, headers=site.headers)) for _ in range(20)]
        try:
            await at_work.wait()
            async with asyncio.timeout(HANG_S / 8):
                await site.get(other)
                await site.get("/api/campaigns")
        finally:
            gate.set()
            assert {answer.status for answer in await asyncio.gather(*waiting)} == {200, 503}


def test_those_who_wait_for_their_turn_are_sent_away_at_the_end(stage: Stage) -> None:
    """Each of them could take as long as the one before it."""
    it, gate, at_work = followed(stage), threading.Event(), threading.Event()

    def first(_: Followed) -> None:
        at_work.set()
        gate.wait(HANG_S)

    with ThreadPoolExecutor(3) as pool:
        pool.submit(it.run, first)
        assert at_work.wait(HANG_S)
        second = pool.submit(it.run, lambda _: "worked")
        ending = pool.submit(it.close)
        while not it.is_over:
            pass
        gate.set()
        with pytest.raises(LedgerError, match="the server ends"):
            second.result(HANG_S)
        ending.result(HANG_S)
