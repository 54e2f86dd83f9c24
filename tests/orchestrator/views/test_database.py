"""Every command finds a ledger that is in a database, given its URL, and no line of any of them holds the password."""

import asyncio
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from psycopg.conninfo import conninfo_to_dict

from orchestrator.domain import events as e
from orchestrator.ledger import verify_jsonl
from orchestrator.loop import campaign
from orchestrator.views.cli import main
from orchestrator.views.exits import Exit
from orchestrator.wiring.beginning import How
from orchestrator.wiring.ledgers import campaign_lock
from private_postgres import PrivatePostgres
from tests.orchestrator.loop.scripted import scripted, write_task

pytestmark = pytest.mark.postgres

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], database: PrivatePostgres) -> Run:
    """A command line: its exit code, stdout and stderr, which were looked through for the password."""
    monkeypatch.setattr(campaign, "POLL_S", 0.01)

    def call(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["blastdoor", "--verbose", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capfd.readouterr()
        assert "canary" not in out + err
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    return call


@pytest.fixture
def task(tmp_path: Path, database: PrivatePostgres) -> Path:
    folder = write_task(tmp_path / "task")
    asyncio.run(work(folder, How.START))
    return folder


async def work(folder: Path, how: How) -> list[str]:
    """A session of three attempts; what it answered to requests."""
    points = ({"value": 3}, {"value": 7}, {"value": 5})
    async with scripted(folder, None, *points, how=how, attempts=3) as session:
        await session.run()
        return [event.answer for event in session.of(e.RequestTaken)]


def test_looking(task: Path, run: Run) -> None:
    """All that show a campaign show it."""
    for words in (["status"], ["tree"], ["chart"], ["report"], ["show", "best"], ["diff", "best"], ["ledger", "list"]):
        code, out, err = run(*words, task)
        assert (code, err, bool(out)) == (Exit.OK, "", True), words
    assert '"value": 7' in run("show", "best", task)[1]


def test_proving(task: Path, run: Run, tmp_path: Path) -> None:
    """Head, proof and export are those of the one chain."""
    head, exported = tmp_path / "head.json", tmp_path / "ledger.jsonl"
    assert run("ledger", "head", "--out", head, task)[0] == Exit.OK
    assert "is the one that was kept" in run("ledger", "verify", "--head", head, task)[1]
    assert run("export", "--jsonl", exported, task)[0] == Exit.OK
    with exported.open() as stream:
        assert verify_jsonl(stream).head.seq == json.loads(head.read_text())["seq"]
    assert "canary" not in exported.read_text()


def test_steering(task: Path, run: Run) -> None:
    """A request waits in the database for the next session."""
    change = task / "change"
    change.write_text("notes.txt\n```\nsomething\n```\n")
    assert "at the next blastdoor resume" in run("inject", "--diff", change, task)[1]
    assert "nobody works on it" in run("pause", task)[2]
    assert asyncio.run(work(task, How.RESUME)) == ["queued"]


def test_collecting(task: Path, run: Run) -> None:
    """Bytes are cleared out while nobody works, here or elsewhere."""
    assert "removed" in run("ledger", "gc", "--dry-run", task)[1]
    with campaign_lock(task / ".blastdoor"):
        code, _, err = run("ledger", "gc", task)
    assert (code, "works on this campaign" in err) == (Exit.BAD_INPUT, True)


def test_flag(task: Path, run: Run, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """--ledger wins over the setting and takes no password, which then comes from elsewhere."""
    monkeypatch.setenv("PGPASSWORD", str(conninfo_to_dict(database.url())["password"]))
    monkeypatch.setenv("BLASTDOOR_LEDGER", "postgresql://nobody@127.0.0.1:1/nothing")
    assert run("--ledger", f"postgresql://tester@127.0.0.1:{database.port}/postgres", "status", task)[0] == Exit.OK
    for url in (f"postgresql://tester:canary@127.0.0.1:{database.port}/postgres", "postgresql://h/d?password=canary"):
        code, _, err = run("--ledger", url, "status", task)
        assert (code, "takes no password" in err) == (Exit.BAD_INPUT, True)
    code, _, err = run("--ledger", "mysql://h/d", "status", task)
    assert (code, "ledger: must be a URL like postgresql://" in err) == (Exit.BAD_INPUT, True)


def test_lines_for_what_is_wrong(
    task: Path, run: Run, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No URL, a wrong one, a wrong password, no server, another database: one line each, which says what to do."""
    wrong = {
        f"postgresql://tester:canary@127.0.0.1:{database.port}/postgres": "password authentication failed",
        "postgresql://tester:canary@127.0.0.1:1/postgres": "Connection refused",
        database.url("template1"): "has no campaign",
        "postgresql://tester:ca@canary@127.0.0.1/postgres": "has a bare @",
        "mysql://tester:canary@host/db": "must be a URL like",
    }
    for url, line in wrong.items():
        monkeypatch.setenv("BLASTDOOR_LEDGER", url)
        for words in (
            ["status", task],
            ["pause", task],
            ["ledger", "verify", task],
            ["run", "--dry-run", "--new-run", task],
        ):
            code, out, err = run(*words)
            assert (code, out) == (Exit.BAD_INPUT, ""), (url, words)
            assert line in err.splitlines()[-1], (url, words)
    monkeypatch.delenv("BLASTDOOR_LEDGER")
    assert "set BLASTDOOR_LEDGER, or ledger in settings.toml" in run("status", task)[2]


def test_server_goes_away_while_followed(
    task: Path, run: Run, database: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows a campaign waits for its database a while, then is told that it is gone."""
    monkeypatch.setattr("orchestrator.ledger.postgres.PATIENCE_S", 0.2)
    monkeypatch.setattr("orchestrator.views.campaign.logs.time", SimpleNamespace(sleep=lambda _: database.stop()))
    try:
        code, out, err = run("logs", "-f", task)
    finally:
        database.start()
    assert (code, bool(out)) == (Exit.BAD_INPUT, True)
    assert re.search(r"went away and was not back after \d+\.\d s", err.splitlines()[-1])
