"""One orchestrator at a time holds a campaign, and only for as long as it lives."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.ledger import CampaignLock, Held, Holder, LedgerError, held_by

_HOLDER = """
import subprocess, sys, time
from pathlib import Path
from orchestrator.ledger import CampaignLock
with CampaignLock(Path(sys.argv[1])):
    child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
    sys.stdout.write(f"{child.pid}\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


_FORKER = """
import os, sys, time
from pathlib import Path
from orchestrator.ledger import CampaignLock
with CampaignLock(Path(sys.argv[1])):
    if os.fork() == 0:
        sys.stdout.write(f"{os.getpid()}\\n")
        sys.stdout.flush()
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@contextmanager
def other_process(path: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A holder, and the pid of a child of it that lives on."""
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            yield holder, child
        finally:
            holder.kill()
            os.kill(child, signal.SIGKILL)


def test_held_and_released(path: Path) -> None:
    """While it is held others know by whom, and afterwards that nobody is there."""
    assert held_by(path) is None
    with CampaignLock(path):
        holder = held_by(path)
        assert holder is not None
        assert (holder.pid, holder.host) == (os.getpid(), os.uname().nodename)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert held_by(path) is None
    with CampaignLock(path):
        assert held_by(path) == Holder(os.getpid(), os.uname().nodename, held_by(path).since)  # type: ignore[union-attr]


def test_second_is_told_who_is_first(path: Path) -> None:
    """The message names process, host and time, and says what to do, in one line."""
    with CampaignLock(path), pytest.raises(Held) as caught:
        CampaignLock(path).acquire()
    words = str(caught.value)
    assert words.startswith(f"another orchestrator (pid {os.getpid()} on host ")
    assert ", since 20" in words
    assert words.endswith("works on this campaign; stop it or wait")
    assert "\n" not in words


def test_twice_by_one(path: Path) -> None:
    """A lock object is used once at a time, and releasing twice is no error."""
    lock = CampaignLock(path)
    lock.acquire()
    with pytest.raises(LedgerError, match="already"):
        lock.acquire()
    lock.release()
    lock.release()
    with lock:
        pass


@pytest.mark.crash
def test_killed_holder_lets_go(path: Path) -> None:
    """SIGKILL frees the campaign at once, although a child of the killed one lives on."""
    with other_process(path) as (holder, child):
        found = held_by(path)
        assert found is not None
        assert found.pid == holder.pid
        with pytest.raises(Held, match=f"pid {holder.pid} "):
            CampaignLock(path).acquire()
        holder.kill()
        holder.wait()
        os.kill(child, 0)
        assert held_by(path) is None
        with CampaignLock(path):
            pass


@pytest.mark.crash
def test_fork_does_not_inherit(path: Path) -> None:
    """A forked child neither keeps a dead parent's campaign locked nor takes the lock from a living one."""
    command = [sys.executable, "-c", _FORKER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            assert held_by(path) is not None
            parent.kill()
            parent.wait()
            os.kill(child, 0)
            assert held_by(path) is None
        finally:
            os.kill(child, signal.SIGKILL)


def test_looking_does_not_disturb(path: Path) -> None:
    """However often others look whether someone works, who wants to start can."""
    stop = threading.Event()
    seen: set[Holder | None] = set()

    def look() -> None:
        while not stop.is_set():
            seen.add(held_by(path))

    watchers = [threading.Thread(target=look) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(100):
            with CampaignLock(path):
                assert held_by(path) is not None
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()
    assert len(seen) > 1, "they looked while nobody worked, and while somebody did"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x"}', '{"pid": 1}', "\x00\xff"])
def test_strange_content(path: Path, text: str) -> None:
    """Whatever the file says: who holds it is the kernel's word, and free is free."""
    path.write_text(text)
    assert held_by(path) is None
    with CampaignLock(path):
        path.write_text(text)
        assert held_by(path) == Holder(0, "unknown", "a moment ago")
        with pytest.raises(Held, match="another orchestrator works"):
            CampaignLock(path).acquire()


def test_no_folder(tmp_path: Path) -> None:
    """A path that cannot be is an error of ours, with the path in it."""
    with pytest.raises(LedgerError, match="no/lock"):
        CampaignLock(tmp_path / "no/lock").acquire()
