"""Processes that are forked from a warm one are as those that Python starts."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.started import FRESH, Started, completed

NOBODYS = {**os.environ, "COLUMNS": "90"}


@pytest.mark.long
def test_as_a_fresh_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words in the same folder: the same exit code, and the same on either stream."""
    monkeypatch.chdir(tmp_path)
    words = ("init", "Not a task/")
    fresh = subprocess.run([*FRESH, *words], capture_output=True, text=True, env=NOBODYS, check=False)
    assert fresh.returncode == 0, fresh.stderr
    (tmp_path / "Not a task").rename(tmp_path / "before")
    forked = completed(*words, env=NOBODYS)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
    assert _files(tmp_path / "Not a task") == _files(tmp_path / "before") != []


def test_its_environment_is_what_it_is_given() -> None:
    """All of it and nothing else; the next one has its own."""
    wrong = completed("init", env={**NOBODYS, "BLASTDOOR_NO_SUCH": "1"})
    assert (wrong.returncode, "BLASTDOOR_NO_SUCH is not a setting" in wrong.stderr) == (2, True)
    assert "BLASTDOOR_NO_SUCH" not in completed("init", env=NOBODYS).stderr


@pytest.mark.parametrize("sign", ["", "true"])
def test_its_streams_are_its_own(sign: str) -> None:
    """A pipe is a pipe to it, also where its output is guarded because it becomes a log of CI."""
    with Started("--version", stdout=subprocess.PIPE, env={**NOBODYS, "CI": sign}) as started:
        assert started.said.read().startswith("blastdoor,")
    assert started.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_by_a_signal(number: signal.Signals) -> None:
    """What ended it is told, as of any child."""
    with Started(program="tests.test_started:waits") as started:
        assert started.poll() is None
        started.send_signal(number)
    assert started.wait() == -number


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def waits() -> None:
    time.sleep(600)
