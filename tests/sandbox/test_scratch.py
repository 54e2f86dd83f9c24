"""Folders of a moment are gone afterwards, whatever became of the process."""

import os
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.scratch import PREFIX, scratch


@pytest.fixture(params=["given", "temporary"])
def within(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    """Of both places, nothing else is looked at."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path if request.param == "given" else None


def killed_in(within: Path | None, tmp_path: Path) -> Path:
    """The folder that a process left that was killed while it worked there."""
    before = set(tmp_path.iterdir())
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        with scratch("killed", within) as folder:
            (folder / "deep/er").mkdir(parents=True)
            (folder / "deep/er/ledger").write_text("x")
            os.write(told, b"x")
            signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = set(tmp_path.iterdir()) - before
    return left


def test_one_that_was_killed_is_cleaned_up_after(within: Path | None, tmp_path: Path) -> None:
    """By whoever makes the next one, of whatever kind; one that somebody works in stays, and so do files of others."""
    other = tmp_path / "other"
    other.mkdir()
    left = killed_in(within, tmp_path)
    assert (left / "deep/er/ledger").is_file()
    with scratch("mine", within) as mine:
        assert not left.exists()
        assert mine.stat().st_mode & 0o777 == 0o700
        with scratch("second", within) as second:
            assert sorted(tmp_path.iterdir()) == sorted([other, mine, second])
    assert list(tmp_path.iterdir()) == [other]


def test_what_only_looks_like_one_stays(within: Path | None, tmp_path: Path) -> None:
    """A link, a file, and a folder of another user's; nothing behind a link is touched."""
    prefix = f".{PREFIX}" if within else PREFIX
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / f"{prefix}link").symlink_to(kept)
    (tmp_path / f"{prefix}file").write_text("x")
    theirs = tmp_path / f"{prefix}theirs"
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 4711, 4711)
    before = {path for path in tmp_path.iterdir() if path != theirs or os.geteuid() == 0}
    with scratch("mine", within):
        pass
    assert before <= set(tmp_path.iterdir())


def test_many_at_once(within: Path | None, tmp_path: Path) -> None:
    """None takes another's for one that was left."""

    def work(_: int) -> None:
        with scratch("many", within) as folder:
            (folder / "file").write_text("x")
            assert (folder / "file").read_text() == "x"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_stops_nobody(
    within: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = killed_in(within, tmp_path)

    def refuse(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr("sandbox.scratch.remove_unmounted", refuse)
        with scratch("mine", within):
            assert left.exists()
    with scratch("mine", within):
        assert not left.exists()
