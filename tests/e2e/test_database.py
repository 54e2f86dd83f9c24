"""A campaign of real chambers with its ledger in PostgreSQL, from the command line: run, killed, resumed, shown."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from private_postgres import PrivatePostgres
from tests.started import Started, completed

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.postgres, pytest.mark.touching("postgres", "recovery")]


@pytest.fixture
def environment(database: PrivatePostgres) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "110"}


def said(environment: dict[str, str], *words: str | Path, code: int = 0) -> str:
    ran = completed(*words, env=environment)
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    assert "canary" not in ran.stdout + ran.stderr
    return ran.stdout if code == 0 else ran.stderr


def test_run_kill_resume_show(tmp_path: Path, environment: dict[str, str]) -> None:
    """Nothing of the ledger is in the folder, and all else works as ever; without the URL, it says what to set."""
    task = tmp_path / "curve"
    said(environment, "init", task)
    words = ("run", task, "--attempts", "500", "--seed", "3", "--width", "1")
    errors = tmp_path / "errors"
    with errors.open("wb") as stderr, Started(*words, env=environment, stderr=stderr) as running:
        until = time.monotonic() + 300
        metrics = task / ".blastdoor" / "metrics.csv"
        while not (metrics.exists() and len(metrics.read_text().splitlines()) > 2):
            assert running.poll() is None, errors.read_text()
            assert time.monotonic() < until
            time.sleep(0.05)
        assert "works on this campaign" in said(environment, "resume", task, code=2)
        running.send_signal(signal.SIGKILL)
    before = len(json.loads(said(environment, "tree", task, "--json")))
    said(environment, "resume", task, "--attempts", str(before + 2))
    assert len(json.loads(said(environment, "tree", task, "--json"))) == before + 3
    assert "score" in said(environment, "show", "best", task)
    head = tmp_path / "head.json"
    said(environment, "ledger", "head", "--out", head, task)
    assert "is the one that was kept" in said(environment, "ledger", "verify", "--head", head, task)
    assert "stands" in said(environment, "replay", "best", task)
    kept = {path.name for path in (task / ".blastdoor").iterdir()}
    assert "ledger.toml" in kept
    assert "ledger.sqlite3" not in kept
    without = {name: value for name, value in environment.items() if name != "BLASTDOOR_LEDGER"}
    assert "set BLASTDOOR_LEDGER" in said(without, "status", task, code=2)
