"""Where an owner's chambers have their folders: in memory where there is a place for it, and always known by a link."""

import errno
import os
import uuid
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from sandbox.backends.runc import estate as estates
from sandbox.backends.runc.cgroups import WANTED, Cgroups, Hierarchy
from sandbox.backends.runc.estate import Estate, owners, sweep
from sandbox.errors import Unavailable
from tests.conftest import Deep


@pytest.fixture
def groups(tmp_path: Path) -> Cgroups:
    """A folder that is taken for a hierarchy."""
    (tmp_path / "cgroup").mkdir()
    return Cgroups((Hierarchy(tmp_path / "cgroup", frozenset(WANTED), False),))


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for a mount in memory."""
    place = tmp_path / "memory"
    place.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"24 1 0:22 / /proc rw - proc proc rw\n30 1 0:26 / {place} rw,nosuid - tmpfs tmpfs rw\n")
    monkeypatch.setattr(estates, "MEMORY", place)
    monkeypatch.setattr(estates, "MOUNTS", mounts)
    return place


def test_in_memory(memory: Path, groups: Cgroups, tmp_path: Path) -> None:
    """The folder is nobody else's, the link is where owners are looked for, and both go."""
    owner = Estate(tmp_path / "state", groups)
    [folder] = memory.iterdir()
    assert (owner.folder, folder.stat().st_mode & 0o777) == (folder, 0o700)
    assert owner.chamber("one", 9).parent == folder
    assert (tmp_path / "state/chambers" / owner.owner).readlink() == folder
    assert owners(tmp_path / "state") == [owner.owner]
    owner.claim("one", ["GPU-1"])
    assert Estate(tmp_path / "state", groups).claims() == {"one": ["GPU-1"]}
    owner.release()
    assert owner.owner not in owners(tmp_path / "state")
    assert not folder.exists()


def test_an_owner_that_died(memory: Path, groups: Cgroups, tmp_path: Path) -> None:
    """Another one finds it by the link: what it had in memory goes, also where a restart of the machine was first."""
    state = tmp_path / "state"
    died, restarted = Estate(state, groups), Estate(state, groups)
    died.chamber("one", 9)
    (memory / f"blastdoor-{restarted.owner}").rmdir()
    for gone in (died, restarted):
        gone.tenancy.release()
    ended, left = Estate(state, groups).reap()
    assert sorted(ended) == sorted([f"blastdoor-{died.owner}-one", f"blastdoor-{restarted.owner}"])
    assert left == []
    assert len(list(memory.iterdir())) == len(owners(state)) == 1


@pytest.mark.parametrize("is_taken", [False, True])
def test_on_disk(
    memory: Path, groups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    """Where there is no such place, or somebody has the name: nothing of that is touched."""
    fixed = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: fixed)
    if is_taken:
        (memory / f"blastdoor-{fixed.hex[:12]}").mkdir()
    else:
        monkeypatch.setattr(estates, "MEMORY", tmp_path / "elsewhere")
    owner = Estate(tmp_path / "state", groups)
    assert owner.folder == tmp_path / "state/chambers" / owner.owner
    assert owner.folder.is_dir()
    assert not owner.folder.is_symlink()
    assert sweep(tmp_path / "state", owner.owner, groups) == [f"blastdoor-{owner.owner}"]
    assert len(list(memory.iterdir())) == is_taken


def _none_left(*_: object) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_a_group_that_nobody_can_look_into(groups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no descriptor left, nothing is seen in it: that is no proof that its processes have ended."""
    group = tmp_path / "cgroup/blastdoor-o/c"
    (group / "alive").mkdir(parents=True)
    monkeypatch.setattr(os, "scandir", _none_left)
    with pytest.raises(Unavailable):
        groups.end("blastdoor-o/c", 0.01)
    assert group.exists()
    monkeypatch.undo()
    groups.end("blastdoor-o/c", 0.01)
    assert not group.exists()


def test_a_folder_that_cannot_be_removed(
    memory: Path, groups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its chamber is not known to have ended, and is ended again later."""
    owner = Estate(tmp_path / "state", groups)
    folder = owner.chamber("one", 9)
    opened = os.open

    def none_left(path: object, *more: Any, **where: Any) -> int:
        if path == folder:
            _none_left()
        return opened(cast("Path", path), *more, **where)

    monkeypatch.setattr(os, "open", none_left)
    with pytest.raises(Unavailable):
        owner.end("one")
    monkeypatch.undo()
    owner.end_again()
    assert not folder.exists()
    owner.release()


def test_t96_what_a_dead_owner_left_is_deep(deep: Deep, memory: Path, groups: Cgroups, tmp_path: Path) -> None:
    """The next owner ends it like any other."""
    died = Estate(tmp_path / "state", groups)
    deep(died.chamber("one", 9), 1_500)
    died.tenancy.release()
    assert Estate(tmp_path / "state", groups).reap() == ([f"blastdoor-{died.owner}-one"], [])


@pytest.mark.parametrize("left", ["a file that cannot be removed", "a lock that is a folder", "words that are no path"])
def test_t96_what_cannot_be_reaped_keeps_nobody_from_their_work(
    memory: Path, groups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """It is left and said, others are reaped, and a GPU that it had is free: its processes are dead."""
    state = tmp_path / "state"
    died, other = Estate(state, groups), Estate(state, groups)
    died.chamber("one", 9)
    died.claim("one", ["GPU-1"])
    for gone in (died, other):
        gone.tenancy.release()
    if left.startswith("a file"):
        (died.folder / "one/stays").write_text("x")
    elif left.startswith("a lock"):
        (state / "owners" / died.owner).mkdir()
    else:
        (died.folder / "place").write_bytes(b"\xff\0")
    unlink = os.unlink

    def refused(path: Any, **where: Any) -> None:
        if path == "stays":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, **where)

    monkeypatch.setattr(os, "unlink", refused)
    new = Estate(state, groups)
    assert new.reap() == ([f"blastdoor-{other.owner}"], [f"blastdoor-{died.owner}"])
    assert bool(new.claims()) == (not left.startswith("a file"))


def test_one_that_ends_late_gives_its_gpus_back(
    groups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others see what a chamber has until its folder is gone, which is after its processes: one that the driver holds
    keeps its GPU until then, and not for the rest of the session.
    """
    ours, theirs = Estate(tmp_path / "state", groups), Estate(tmp_path / "state", groups)
    ours.chamber("one", 9)
    ours.claim("one", ["GPU-0"])
    theirs.chamber("two", 9)
    with monkeypatch.context() as stuck:
        stuck.setattr(os, "scandir", _none_left)
        with pytest.raises(Unavailable):
            ours.end("one", 0.01)
    assert theirs.claims() == {"one": ["GPU-0"]}
    ours.end_again()
    assert theirs.claims() == {}


@pytest.mark.parametrize("odd", ["no text", "a folder", "gone"])
def test_a_claim_that_cannot_be_read(groups: Cgroups, tmp_path: Path, odd: str) -> None:
    """It is said, and hides no other: whoever wants a GPU is not told that a chamber could not be prepared."""
    died, living = Estate(tmp_path / "state", groups), Estate(tmp_path / "state", groups)
    claim = died.chamber("one", 9) / "gpus"
    if odd == "a folder":
        claim.mkdir()
    elif odd == "no text":
        claim.write_bytes(b"GPU-\xff")
    else:
        claim.symlink_to("nowhere")
    living.chamber("two", 9)
    living.claim("two", ["GPU-1"])
    with capture_logs() as logs:
        assert living.claims() == {"two": ["GPU-1"]}
    assert [(it["event"], it["chamber"]) for it in logs] == [("claim.not_read", "one")] * (odd != "gone")


@pytest.mark.parametrize("what", ["a link", "a folder of another"])
def test_t96_what_another_user_put_into_memory_stays(memory: Path, groups: Cgroups, tmp_path: Path, what: str) -> None:
    """After a restart anybody may make something of an owner's name there: nothing behind it is removed."""
    died = Estate(tmp_path / "state", groups)
    died.tenancy.release()
    died.folder.rmdir()
    if what == "a link":
        theirs = tmp_path / "theirs"
        theirs.mkdir()
        died.folder.symlink_to(theirs)
    else:
        theirs = died.folder
        theirs.mkdir()
        os.chown(theirs, 1234, -1)
    (theirs / "whole").write_text("x")
    assert Estate(tmp_path / "state", groups).reap() == ([f"blastdoor-{died.owner}"], [])
    assert (theirs / "whole").read_text() == "x"
