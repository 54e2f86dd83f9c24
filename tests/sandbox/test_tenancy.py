"""Who is alive where a provider keeps no lease of ours."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from sandbox.tenancy import Mark, Tenancy


def test_living_owner_is_never_over_and_a_released_one_is(tmp_path: Path) -> None:
    """Not even past the end that was set: on one's own place the lock decides, also once it is released (T77)."""
    mine, other = Tenancy(tmp_path, clock=lambda: 1000.0), Tenancy(tmp_path, clock=lambda: 9000.0)
    assert not other.is_over(mine.mark(10))
    assert not mine.is_over(mine.mark(10))
    assert not other.is_over(Mark("../../etc/passwd", other.place, 0)), "a foreign name is left alone"
    assert len({mine.place, other.place, Tenancy(tmp_path).place}) == 1
    mark = mine.mark(1000)
    mine.release()
    assert other.is_over(mark)


def test_killed_owner_is_over_at_once(tmp_path: Path) -> None:
    """kill -9 lets go of the lock, and a child of the dead one does not keep it."""
    script = (
        "import subprocess, sys; from pathlib import Path; from sandbox.tenancy import Tenancy\n"
        "mine = Tenancy(Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "print(mine.owner, child.pid, flush=True); sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    name, child = owner.stdout.readline().split()
    try:
        other = Tenancy(tmp_path)
        mark = Mark(name, other.place, 2**40)
        assert not other.is_over(mark)
        owner.kill()
        owner.wait()
        assert other.is_over(mark)
    finally:
        os.kill(int(child), signal.SIGKILL)


def test_owner_elsewhere_is_over_at_its_end_only(tmp_path: Path) -> None:
    now = [1000.0]
    here, elsewhere = Tenancy(tmp_path / "a", clock=lambda: now[0]), Tenancy(tmp_path / "b", clock=lambda: now[0])
    mark = elsewhere.mark(10)
    assert mark.place != here.place
    assert not here.is_over(mark)
    elsewhere.release()
    assert not here.is_over(mark)
    now[0] = 1011.0
    assert here.is_over(mark)


def test_copied_folder_is_another_place(tmp_path: Path) -> None:
    """Its owners are unknown here, and so are their locks: what they made is left alone until its end (T77)."""
    mine = Tenancy(tmp_path / "home")
    shutil.copytree(tmp_path / "home", tmp_path / "copy", ignore=shutil.ignore_patterns(mine.owner))
    copied = Tenancy(tmp_path / "copy")
    assert copied.place != mine.place
    assert not copied.is_over(mine.mark(1000))


@pytest.mark.parametrize("odd", ["a folder", "a link to itself", "another user's"])
def test_an_odd_lock_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    """Nobody can tell whether its owner lives, so what it made is left, and said; of all others it is told as ever."""
    here, living, dead, unknown = (Tenancy(tmp_path) for _ in range(4))
    marks = {name: it.mark(1000) for name, it in (("living", living), ("unknown", unknown), ("dead", dead))}
    dead.release()
    unknown.release()
    lock = tmp_path / unknown.owner
    opened = os.open

    def refused(path: object, *more: Any) -> int:
        if path == lock:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(cast("Path", path), *more)

    if odd == "a folder":
        lock.mkdir()
    elif odd == "a link to itself":
        lock.symlink_to(lock)
    else:
        monkeypatch.setattr(os, "open", refused)
    with capture_logs() as logs:
        assert here.sorted_out(marks.items()) == (["dead"], ["unknown"])
    assert [(it["event"], it["owner"]) for it in logs] == [("owner.not_known", unknown.owner)]
