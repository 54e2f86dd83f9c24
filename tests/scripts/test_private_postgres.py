"""A PostgreSQL server for tests: installed without one of the package's own, and gone with whoever started it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

import distribution
from distribution import Unprepared, require
from orchestrator.machine import programs
from private_postgres import PrivatePostgres

SCRIPTS = Path(distribution.__file__).parent

_STARTER = """
import sys, time
from pathlib import Path
from private_postgres import postgres
with postgres(Path(sys.argv[1])) as server:
    sys.stdout.write(f"{server.home}\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot install is told what to install, and nothing of engines."""
    monkeypatch.setattr(programs, "program", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unprepared, match="apt-get install postgresql") as caught:
        require("initdb", "postgres", log=tmp_path / "apt.log")
    assert "DOCKER" not in str(caught.value)


@pytest.mark.parametrize("there", [False, True])
def test_installed_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """The package makes no database of its own, unless somebody had settled that before."""
    settings, done = tmp_path / "createcluster.conf", list[tuple[str, ...]]()
    if there:
        settings.write_text("create_main_cluster = true\n")

    def apt_get(*arguments: str, log: Path) -> None:
        done.append(arguments)
        if "postgresql-common" in arguments:
            settings.write_text("# as the package has it\n")

    monkeypatch.setattr(distribution, "CLUSTERS", settings)
    monkeypatch.setattr(programs, "apt_get", apt_get)
    monkeypatch.setattr(programs, "may_install", lambda: True)
    monkeypatch.setattr(programs, "release", lambda: {"ID": "debian"})
    monkeypatch.setattr(programs, "program", lambda name: name if _installed(done) else None)
    require("initdb", "postgres", log=tmp_path / "apt.log")
    assert [words[-1] for words in done] == ["update", *([] if there else ["postgresql-common"]), "postgresql"]
    assert ("create_main_cluster = false" in settings.read_text()) is not there


def _installed(done: list[tuple[str, ...]]) -> bool:
    return any(words[-1] == "postgresql" for words in done)


@pytest.mark.postgres
def test_server(postgres_server: PrivatePostgres) -> None:
    """It is durable, asks for a password, and listens on loopback alone."""
    with psycopg.connect(postgres_server.url()) as connection:
        found = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in ("fsync", "listen_addresses")]
        assert found == [("on",), ("127.0.0.1",)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_server.url(password="wrong"))


@pytest.mark.postgres
@pytest.mark.crash
def test_ends_with_its_owner(tmp_path: Path) -> None:
    """Whoever started it and was killed leaves no server behind."""
    command = [sys.executable, "-c", _STARTER, str(tmp_path / "apt.log")]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        home = Path(owner.stdout.readline().strip())
        pid = int((home / "data" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, 0)
        owner.send_signal(signal.SIGKILL)
    until = time.monotonic() + 60
    while (home / "data" / "postmaster.pid").exists():
        assert time.monotonic() < until, "the server lives on"
        time.sleep(0.05)
    shutil.rmtree(home)
