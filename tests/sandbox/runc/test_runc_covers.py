"""Files of a chamber's own, over those that all of a realm share: an overlay in a namespace that ends with its work."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.backends.runc import covers
from sandbox.backends.runc.covers import covered
from sandbox.errors import Refused, Unavailable

LOCK = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"


@pytest.fixture(params=["plain", "with: a, comma\\"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / str(request.param)
    found.mkdir()
    (found / "file").write_text("content")
    return found


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


def test_what_is_started_in_there_has_inodes_of_its_own(folder: Path, empty: Path) -> None:
    """A lock on the file is no lock on the other, twice at once; what it says is the same, and nobody can write."""

    def work() -> tuple[str, int, int]:
        done = subprocess.run([sys.executable, "-c", LOCK, folder / "file"], check=False)
        with pytest.raises(OSError, match="Read-only"):
            (folder / "file").write_text("other")
        return (folder / "file").read_text(), (folder / "file").stat().st_dev, done.returncode

    with (folder / "file").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert subprocess.run(
            [sys.executable, "-c", LOCK, folder / "file"], capture_output=True, check=False
        ).returncode
        text, device, code = covered(work, {folder: empty})
    assert (text, code) == ("content", 0)
    assert device != folder.stat().st_dev


def test_nothing_of_it_is_seen_elsewhere(folder: Path, empty: Path) -> None:
    """Not in our own namespace while it is there, nor after it; nobody has to take it away."""
    before = Path("/proc/self/mountinfo").read_text()

    def work() -> tuple[str, str]:
        mine = Path("/proc/thread-self/mountinfo").read_text()
        return mine, Path(f"/proc/{os.getpid()}/mountinfo").read_text()

    mine, ours = covered(work, {folder: empty})
    assert len(mine.splitlines()) == len(before.splitlines()) + 1
    assert ours == before == Path("/proc/self/mountinfo").read_text()


def test_a_folder_that_is_gone(tmp_path: Path, empty: Path) -> None:
    with pytest.raises(Unavailable, match="nowhere cannot be mounted"):
        covered(lambda: None, {tmp_path / "nowhere": empty})


def test_a_kernel_without_it(folder: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to do; no chamber is made that shares what it should not."""
    called = covers.called

    def lacking(name: str, *words: object) -> None:
        if words[:1] == (b"overlay",):
            raise OSError(errno.ENODEV, "No such device")
        called(name, *words)

    monkeypatch.setattr(covers, "called", lacking)
    with pytest.raises(Refused, match="modprobe overlay"):
        covered(pytest.fail, {folder: empty})
