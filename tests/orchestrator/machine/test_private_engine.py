"""What can be said of the private engine without starting it."""

import os
from pathlib import Path

import pytest

from orchestrator.machine import private_engine
from orchestrator.machine.private_engine import PrivateEngine, answers, make_own_folder, remove_folder
from orchestrator.machine.programs import Unprepared
from tests.conftest import Deep


def test_socket_paths_fit(tmp_path: Path) -> None:
    """However deep the folder lies, the socket's path fits into a socket address; two folders have two engines, even
    where both live in the common folder. One that is not there does not answer, and is no error.
    """
    deep = tmp_path / ("x" * 100)
    assert len(os.fsencode(PrivateEngine(deep).socket)) <= 107
    assert PrivateEngine(Path("/r/.engine")).socket == Path("/r/.engine/sock")
    first, second = (PrivateEngine(Path("/", "x" * 100, name)) for name in ("a", "b"))
    assert first.run != second.run
    assert not answers(str(first.socket))


def test_folder_of_the_engine(tmp_path: Path) -> None:
    """Only we can enter the one that holds the socket; a link that someone else could have put there is not entered."""
    make_own_folder(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Unprepared):
        make_own_folder(tmp_path / "link")


def test_t96_what_the_daemon_kept_is_deep(deep: Deep, tmp_path: Path) -> None:
    """A step of an image can leave more folders in one another than Python's own removal takes."""
    remove_folder(deep(tmp_path / "engine", 1_500))
    assert not (tmp_path / "engine").exists()


def test_a_mount_of_any_name_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No UTF-8, or what ends a line or a word in texts of Python and nowhere else."""
    names = (b"\xff", b"\r", b"\xc2\x85", b"\xc2\xa0")
    (tmp_path / "mounts").write_bytes(b"".join(b"30 20 0:25 / /" + it + b" rw - tmpfs none rw\n" for it in names))
    monkeypatch.setattr(private_engine, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "engine").mkdir()
    remove_folder(tmp_path / "engine")
    assert not (tmp_path / "engine").exists()
