"""Folders that somebody else filled: what is in them hangs nobody, takes no memory, and hides no other campaign."""

import asyncio
import dataclasses
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.ledger import Head, Ledger
from orchestrator.settings import Settings
from orchestrator.views.page import overview
from orchestrator.views.page.finding import Found, find_campaigns
from orchestrator.views.page.followed import Followed
from orchestrator.wiring.ledgers import FILE, NOTE
from tests.orchestrator.views.campaign.builder import campaign
from tests.orchestrator.views.campaign.conftest import Stage, stage
from tests.orchestrator.views.page.conftest import Site, followed, grow
from tests.orchestrator.views.page.stories import comparison

__all__ = ["stage"]  # a fixture, of commands

HANG_S = 60


def _pipe(name: str) -> Callable[[Stage], None]:
    def lay(made: Stage) -> None:
        (made.campaign / name).unlink(missing_ok=True)
        os.mkfifo(made.campaign / name)

    return lay


def _endless(made: Stage) -> None:
    with sqlite3.connect(made.campaign / FILE) as database:
        database.execute("ALTER TABLE projection RENAME TO was")
        database.execute(
            "CREATE VIEW projection AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
            " SELECT 'run' AS kind, x AS id, '{}' AS body FROM n"
        )


def _computed(made: Stage) -> None:
    with sqlite3.connect(made.campaign / FILE) as database:
        database.execute("ALTER TABLE meta ADD COLUMN more GENERATED ALWAYS AS (hex(zeroblob(100000000)))")


def _task_file(made: Stage) -> Path:
    digest = made.story.state.run.task
    return made.campaign / "artifacts" / digest[:2] / digest[2:]


def _pipe_as_task(made: Stage) -> None:
    _task_file(made).unlink()
    os.mkfifo(_task_file(made))


def _huge_task(made: Stage) -> None:
    os.truncate(_task_file(made), 1 << 40)  # it takes no room on disk


def _rows(kind: str, body: str) -> Callable[[Stage], None]:
    def spoil(made: Stage) -> None:
        with sqlite3.connect(made.campaign / FILE) as database:
            database.execute("UPDATE projection SET body = ? WHERE kind = ?", (body, kind))

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        _pipe("lock"),
        _pipe(NOTE),
        _pipe(f"{FILE}-wal"),
        _pipe(f"{FILE}-shm"),
        _endless,
        _computed,
        _pipe_as_task,
        _huge_task,
        _rows("campaign", "[" * 100_000),
        _rows("campaign", "{}"),
        _rows("run", "null"),
    ],
)
async def test_one_bad_folder_is_a_row_of_its_own(stage: Stage, tmp_path: Path, spoil: Callable[[Stage], None]) -> None:
    """It is told as not readable and why, in a line; the others are shown, and can be looked at."""
    stage.write()
    bad = a_campaign(tmp_path / "bad", 3)
    for beside in ("wal", "shm"):
        (bad.campaign / f"{FILE}-{beside}").unlink(missing_ok=True)
    spoil(bad)
    async with asyncio.timeout(HANG_S), Site(tmp_path) as site:
        rows = {Path(row["folder"]).name: row for row in await site.get("/api/campaigns")}
        assert rows["bad"]["status"] == "not readable"
        assert len(rows["bad"]["why"]) > 10
        assert "does not answer" not in rows["bad"]["why"]
        assert rows["task"]["status"] == "died"
        assert (await site.get(f"/api/campaign/{rows['task']['id']}/board"))["count"] == 5


async def test_one_that_does_not_answer_keeps_nobody_waiting(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk or a database that is away: the others are shown; it is asked once, and shown when it answers."""
    stage.write()
    a_campaign(tmp_path / "bad", 3)
    row, gate, asked = overview.row_of, asyncio.Event(), []
    loop = asyncio.get_running_loop()
    rows = {it.id: row(it, None) for it in find_campaigns([tmp_path]).values()}

    def slow(found: Found, settings: Settings | None) -> overview.Row:
        if found.named.name == "bad":
            asked.append(found)
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
        return rows[found.id]  # at once: a busy machine takes longer to read it than the other may take to answer

    monkeypatch.setattr(overview, "row_of", slow)
    monkeypatch.setattr(overview, "ANSWER_S", 0.5)
    async with asyncio.timeout(HANG_S), Site(tmp_path) as site:
        for _ in range(2):
            status = {Path(it["folder"]).name: it["status"] for it in await site.get("/api/campaigns")}
            assert status == {"bad": "not readable", "task": "died"}
        assert len(asked) == 1
        gate.set()
        monkeypatch.setattr(overview, "ANSWER_S", HANG_S)
        status = {Path(it["folder"]).name: it["status"] for it in await site.get("/api/campaigns")}
        assert status == {"bad": "died", "task": "died"}


def a_campaign(folder: Path, count: int) -> Stage:
    made = Stage(folder)
    made.story = campaign(count, folder=folder)
    made.write()
    return made


def _another(made: Stage) -> Stage:
    return a_campaign(made.folder.parent / "other", 30)


def _moved_in(made: Stage) -> None:
    other = _another(made)
    shutil.rmtree(made.campaign)
    other.campaign.rename(made.campaign)


def _copied_over(made: Stage) -> None:
    """Into the same file, as `cp` does it."""
    other = _another(made)
    with Ledger.open(other.campaign / FILE) as ledger:
        ledger.seize("a test")
    with sqlite3.connect(other.campaign / FILE) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for beside in ("wal", "shm"):
        (made.campaign / f"{FILE}-{beside}").unlink(missing_ok=True)
    (made.campaign / FILE).write_bytes((other.campaign / FILE).read_bytes())
    shutil.copytree(other.campaign / "artifacts", made.campaign / "artifacts", dirs_exist_ok=True)


@pytest.mark.parametrize("replace", [_moved_in, _copied_over])
def test_a_campaign_that_is_replaced_is_another_one(stage: Stage, replace: Callable[[Stage], None]) -> None:
    """Nothing of the old one is left: viewers start again, with the other one's nodes, words and chain."""
    it = followed(stage)
    it.walk()
    it.views.made(("money", 1), it.seq, lambda _: {"old": True})
    assert it.board.whole()["count"] == 5
    old, seq = it.packed_board(it.reading.state.run), it.seq
    replace(stage)
    update = it.run(Followed.poll)
    assert update == it.start_again()
    assert it.board.whole()["count"] == 31
    it.reading = dataclasses.replace(it.reading, head=Head(seq, ""))  # as if it had come just as far
    assert it.packed_board(it.reading.state.run) != old
    it.reading = dataclasses.replace(it.reading, head=it.reading.ledger.head())
    assert it.views.made(("money", 1), it.seq, lambda _: {"new": True}) == {"new": True}
    assert it.walk()["broken"] == ""
    assert it.run(Followed.poll) is None
    it.close()


def test_one_that_was_away_while_its_campaign_was_replaced(stage: Stage) -> None:
    """It is sent nothing of the new one for its old board, though the new one has gone past where the old one stood,
    or stands just there.
    """
    kept = stage.folder.parent / "kept"
    other = _another(stage)
    stage.write()
    stage.campaign.rename(kept)
    other.campaign.rename(stage.campaign)
    (found,) = find_campaigns([stage.folder]).values()
    it = Followed(found, None)
    seen, seq = it.mark, it.seq
    shutil.rmtree(stage.campaign)
    kept.rename(stage.campaign)
    assert it.run(Followed.poll) == it.start_again()
    first = it.mark
    for length in (seq, seq + 5):
        _grow_to(stage, it, length)
        assert it.since(seen) is None
        assert it.since(first) == list(it.updates)
        assert it.since(it.mark) == []
    it.close()


def _grow_to(made: Stage, it: Followed, length: int) -> None:
    """By instructions, which are a record each."""
    written = len(made.story.events)
    for number in range(length - it.seq):
        made.story.tell(e.Steered(text=f"instruction {number}"))
    grow(made, written)
    it.run(Followed.poll)
    assert it.seq == length


def test_a_campaign_that_is_gone_comes_back(stage: Stage) -> None:
    """While nothing is there it cannot be read; one that has not begun is no campaign; then it is the new one."""
    it = followed(stage)
    other = _another(stage)
    kept = stage.campaign.with_name("kept")
    stage.campaign.rename(kept)
    for _ in range(2):
        with pytest.raises(Exception, match="no ledger"):
            it.run(Followed.poll)
    stage.campaign.mkdir()
    with Ledger.create(stage.campaign / FILE):
        pass
    for _ in range(2):
        with pytest.raises(Exception, match="no campaign has begun"):
            it.run(Followed.poll)
    shutil.rmtree(stage.campaign)
    other.campaign.rename(stage.campaign)
    assert it.run(Followed.poll) == it.start_again()
    assert it.board.whole()["count"] == 31
    it.close()


def test_what_ended_is_whole_in_its_file(stage: Stage, tmp_path: Path) -> None:
    """Though the page keeps the ledger open: a copy of the one file has every record."""
    it = followed(stage)
    written = len(stage.story.events)
    stage.story.attempt("1.1", 3.0, kept=True)
    grow(stage, written)
    copy = tmp_path / "copy.sqlite3"
    shutil.copyfile(stage.campaign / FILE, copy)
    it.run(Followed.poll)
    with Ledger.open(copy, read_only=True) as ledger:
        assert ledger.head().seq == it.seq > written
    it.close()


async def test_a_comparison_that_anybody_wrote(tmp_path: Path) -> None:
    """Its campaigns are shown all the same, and no name in it leads out of its folder. A pipe in its place is none, and
    nobody waits for a writer.
    """
    file = comparison(tmp_path / "task") / "ab.json"
    whole = json.loads(file.read_text())
    async with Site(tmp_path) as site:
        address = f"/api/campaign/{(await site.get('/api/campaigns'))[0]['id']}"
    for text, said in (
        ("{", "is not what blastdoor ab wrote"),
        ("[]", "is not what blastdoor ab wrote"),
        (" " * (2 << 20), "longer than any"),
        ('"first": ["a", "../../x"]', "Every pair"),
        ('"values": {}', "It cannot be read"),
        ('"ended": {"01a": {"why": "x"}, "01b": {"why": "x"}, "../../../x": {"why": "x"}}', "Every pair"),
    ):
        file.write_text(json.dumps(whole | json.loads(f"{{{text}}}")) if ":" in text else text)
        async with Site(tmp_path) as site:
            assert said in json.dumps(await site.get(f"{address}/view/report")), text
    file.unlink()
    os.mkfifo(file)
    async with Site(file.parent) as site:
        (row, *_) = await site.get("/api/campaigns")
        assert "Every pair" not in json.dumps(await site.get(f"/api/campaign/{row['id']}/view/report"))
