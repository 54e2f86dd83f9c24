"""`blastdoor up` and `blastdoor down`, with a daemon that is none: who starts it, who may reach it, what ends it."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result

from orchestrator.machine import engine, private_engine, programs
from orchestrator.machine.private_engine import PrivateEngine
from orchestrator.machine.programs import Unprepared
from orchestrator.settings import Settings
from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.failing import explained
from orchestrator.wiring.backends.docker import docker_config
from tests.clicking import runner

DAEMON = Path(__file__).with_name("dockerd.py")
NOBODY = 65534
# In a process of its own: it takes signals over, and its mask stays.
_RUN = """
import sys
from pathlib import Path
from orchestrator.machine import engine
from orchestrator.machine.private_engine import PrivateEngine
engine.DEFAULT_SOCKET, engine.is_root = "/nonexistent", lambda: True
sys.exit(engine.run_with_engine(PrivateEngine(Path(sys.argv[1])), sys.argv[2:]))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the engine of this test is, on a machine that has the programs and no engine; it is ended afterwards."""
    programs_folder = tmp_path / "bin"
    programs_folder.mkdir()
    for name in engine.PROGRAMS:
        (programs_folder / name).write_text(f'#!/bin/bash\nexec -a {name} {sys.executable} -I {DAEMON} "$@"\n')
        (programs_folder / name).chmod(0o755)
    monkeypatch.setattr(programs, "SEARCH_PATH", f"{programs_folder}:{os.environ['PATH']}")
    monkeypatch.setattr(engine, "DEFAULT_SOCKET", str(tmp_path / "no.sock"))
    monkeypatch.setattr(engine, "is_root", lambda: True)
    folder = tmp_path / "state" / "blastdoor" / "engine"
    yield folder
    _remove(PrivateEngine(folder))


def _remove(private: PrivateEngine) -> None:
    private.end(force=True)
    (private.run / "pid").unlink(missing_ok=True)  # else a daemon would be started, to end containers
    private.clean()


def _blastdoor(*words: str) -> Result:
    return runner().invoke(cli, list(words))


def _said(result: Result) -> tuple[str, Exit] | None:
    """As `main` tells it."""
    return explained(result.exception) if isinstance(result.exception, Exception) else None


def test_up_then_down(home: Path) -> None:
    """It stays after the command, later commands use it, a second `up` starts nothing, and `down` ends it."""
    first = _blastdoor("up")
    assert first.exit_code == Exit.OK, first.output
    private = PrivateEngine(home)
    pid = (private.run / "pid").read_text()
    assert docker_config(Settings()).host == private.host
    assert f"export DOCKER_HOST={private.host}" in first.output
    assert _blastdoor("up").exit_code == Exit.OK
    assert (private.run / "pid").read_text() == pid
    assert "is stopped" in _blastdoor("down").output
    assert not Path("/proc", pid).exists()
    assert docker_config(Settings()).host == "unix:///var/run/docker.sock"
    assert _blastdoor("down").output == "no private engine runs\n"
    assert home.exists()
    assert "is removed" in _blastdoor("down", "--clean").output
    assert not home.exists()


def test_a_command_has_it_for_as_long_as_it_runs(home: Path) -> None:
    """The command is told the address and its exit code is ours; the engine ends with it, unless it was up before."""
    command = [sys.executable, "-c", _RUN, str(home), "sh", "-c", "echo $DOCKER_HOST $BLASTDOOR_DOCKER_HOST; exit 7"]
    path = programs.SEARCH_PATH
    private = PrivateEngine(home)
    for kept in (False, True):
        if kept:
            assert _blastdoor("up").exit_code == Exit.OK
        ran = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.split()) == (7, [private.host] * 2), ran.stderr
        assert private_engine.answers(str(private.socket)) is kept


def test_an_engine_that_is_there_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where one is named, none is started; where the named one does not answer, one line says so."""
    other = PrivateEngine(tmp_path / "other")
    with other.running() as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        result = _blastdoor("up")
        assert (result.exit_code, "there is nothing to start" in result.output) == (Exit.OK, True)
    _remove(other)
    assert _said(_blastdoor("up")) == (
        f"no engine answers at {host}: start it, or take it out of DOCKER_HOST and the settings", Exit.NO_ENGINE,
    )  # fmt: skip
    assert not home.exists()


def test_t62_no_secret_reaches_the_daemon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon outlives the command that started it: it gets a path and proxies, and no key of ours."""
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_LEDGER", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "postgresql://a:canary@b/c")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert _blastdoor("up").exit_code == Exit.OK
    given = json.loads((PrivateEngine(home).run / "environment.json").read_text())
    assert set(given) <= {"PATH", "GOGC", "LANG", "TZ", "NO_PROXY", "HTTPS_PROXY", "PWD", "SHLVL", "_", "LC_CTYPE"}
    assert "canary" not in str(given)


@pytest.mark.parametrize("before", [0o700, 0o755])
def test_the_socket_is_for_its_user_alone(home: Path, before: int) -> None:
    """Nobody else gets to it, though its own mode lets all in, and though the folder was there and open."""
    private = PrivateEngine(home)
    private.run.mkdir(parents=True, mode=before)
    for folder in private.run.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)  # so that only the engine's own folder can be in the way
    assert _blastdoor("up").exit_code == Exit.OK
    assert private.run.stat().st_mode & 0o777 == 0o700
    if os.getuid() == 0:  # else we cannot become another user
        child = os.fork()
        if child == 0:
            _reach_as_nobody(private.socket)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EACCES


def _reach_as_nobody(path: Path) -> None:
    """Ends this process with the error of connecting."""
    code = 99
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            code = 0
    except OSError as error:
        code = error.errno or 99
    finally:
        os._exit(code)


def test_a_stale_pidfile_ends_nobody(home: Path) -> None:
    """After kill -9 the pidfile may name a stranger: it lives on, and a new daemon is started."""
    assert _blastdoor("up").exit_code == Exit.OK
    private = PrivateEngine(home)
    killed = int((private.run / "pid").read_text())
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert docker_config(Settings()).host == "unix:///var/run/docker.sock"
    with subprocess.Popen(["sleep", "600"]) as stranger:
        try:
            (private.run / "pid").write_text(str(stranger.pid))
            assert _blastdoor("up").exit_code == Exit.OK
            assert docker_config(Settings()).host == private.host
            assert _blastdoor("down").exit_code == Exit.OK
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_down_does_not_end_chambers(home: Path) -> None:
    """While chambers run it refuses, and says what to do; --force ends them."""
    assert _blastdoor("up").exit_code == Exit.OK
    (PrivateEngine(home).run / "containers").write_text('[{"Id": "a"}, {"Id": "b"}]')
    line, code = _said(_blastdoor("down")) or ("", Exit.OK)
    assert (code, line.startswith("chambers still run on the private engine (2): end the campaign")) == (
        Exit.NO_ENGINE,
        True,
    )
    assert docker_config(Settings()).host == PrivateEngine(home).host
    assert _blastdoor("down", "--force").exit_code == Exit.OK


def test_a_deep_folder(home: Path, tmp_path: Path) -> None:
    """The path of a socket has 107 bytes: in a folder that is too deep, the socket is in a short one of our own."""
    deep = tmp_path / ("deep" * 30)
    assert _blastdoor("up", "--folder", str(deep)).exit_code == Exit.OK
    private = PrivateEngine(deep)
    try:
        assert docker_config(Settings()).host == private.host
        assert len(str(private.socket)) <= 107
        refused = _blastdoor("up", "--folder", str(home))
        assert (refused.exit_code, "stop it first" in refused.output) == (Exit.BAD_INPUT, True)
        assert _blastdoor("down", "--clean").exit_code == Exit.OK  # it knows where the engine is
        assert not private.run.exists()
    finally:
        _remove(private)


def test_what_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dockerd is missing and may not be installed, one line says what to install; only root can have a daemon of
    its own, and a folder that others can write is not entered.
    """
    home.mkdir(parents=True)
    home.chmod(0o777)
    with pytest.raises(Unprepared, match="is not a folder that only this user can write"):
        PrivateEngine(home).keep()
    home.chmod(0o700)
    with monkeypatch.context() as patched:
        patched.setattr(programs, "program", lambda name: None if name == "dockerd" else f"/usr/bin/{name}")
        patched.setattr(programs, "may_install", lambda: False)
        assert _said(_blastdoor("up")) == (
            "missing: dockerd. Install it (on Debian: apt-get install docker.io), or run this as root on Debian or "
            "Ubuntu, or set DOCKER_HOST to an engine that runs.",
            Exit.NO_ENGINE,
        )
    monkeypatch.setattr(engine, "is_root", lambda: False)
    line = "no engine answers: start docker, or run this as root, or set DOCKER_HOST"
    assert _said(_blastdoor("up")) == (line, Exit.NO_ENGINE)


def test_a_full_disk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little space is said before a daemon is started; a daemon that finds the disk full is quoted in one line."""
    folder = tmp_path / "full"
    line, code = _said(_blastdoor("up", "--folder", str(folder))) or ("", Exit.OK)
    assert (code, len(line.splitlines())) == (Exit.NO_ENGINE, 1)
    assert "did not start: it ended (failed to start daemon: write /data: no space left on device)" in line
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20))
    line, code = _said(_blastdoor("up", "--folder", str(folder))) or ("", Exit.OK)
    assert (code, "has 5 MiB of free space, and images need 1024 MiB" in line) == (Exit.NO_ENGINE, True)
    _remove(PrivateEngine(folder))
