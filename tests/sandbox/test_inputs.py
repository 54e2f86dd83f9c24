"""Inputs are kept once, under the digest of their content."""

import errno
import os
import threading
from pathlib import Path

import pytest

from sandbox import Input, InputStore, Refused


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/file").write_bytes(b"\x00\xff")
    (folder / "other").write_bytes(b"other")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> InputStore:
    return InputStore(tmp_path / "store")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_added_is_located(store: InputStore, source: Path) -> None:
    """What was added is found, whole and not writable."""
    item = store.add("data", source)
    place = store.locate(item)
    assert contents(place) == contents(source)
    assert {path.stat().st_mode & 0o777 for path in place.rglob("*") if path.is_file()} == {0o444}
    assert {path.stat().st_mode & 0o777 for path in [place, *place.rglob("*")] if path.is_dir()} == {0o755}


def test_any_content(store: InputStore, source: Path, tmp_path: Path) -> None:
    """A file under its name, an empty folder, names that are no UTF-8. The name of an input is not part of its
    address; adding twice leaves one copy and no scraps.
    """
    (source / os.fsdecode(b"bad\xff")).write_bytes(b"x")
    first, second = store.add("a", source), store.add("b", source)
    assert (first.digest, second.name) == (second.digest, "b")
    assert [path.name for path in (tmp_path / "store").iterdir()] == [first.digest]
    assert contents(store.locate(second)) == contents(source)
    assert contents(store.locate(store.add("a", source / "other"))) == {"other": b"other"}
    (tmp_path / "empty").mkdir()
    for _ in range(2):
        assert contents(store.locate(store.add("a", tmp_path / "empty"))) == {}


def test_other_content_is_another_input(store: InputStore, source: Path) -> None:
    """Another byte, another name or another place is another address, and the old one stays as it was."""
    item = store.add("a", source)
    before = contents(store.locate(item))
    (source / "other").write_bytes(b"Other")
    changed = store.add("a", source)
    (source / "other").rename(source / "renamed")
    renamed = store.add("a", source)
    (source / "renamed").rename(source / "deep/renamed")
    moved = store.add("a", source)
    assert len({one.digest for one in (item, changed, renamed, moved)}) == 4
    assert contents(store.locate(item)) == before


def test_two_at_once(store: InputStore, source: Path, tmp_path: Path) -> None:
    """Whoever adds the same content at the same moment gets the same input, whole."""
    (source / "large").write_bytes(os.urandom(3 * 2**20))
    barrier = threading.Barrier(4)
    found: list[Input] = []

    def add() -> None:
        barrier.wait()
        found.append(store.add("a", source))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "store").iterdir()] == [found[0].digest]
    assert contents(store.locate(found[0])) == contents(source)


@pytest.mark.parametrize("target", ["/etc/passwd", "deep", "nowhere"])
def test_links_are_refused(store: InputStore, source: Path, tmp_path: Path, target: str) -> None:
    """Alone or in a folder, and nothing is left of the attempt."""
    (source / "link").symlink_to(target)
    with pytest.raises(Refused, match="is a link"):
        store.add("a", source)
    with pytest.raises(Refused):
        store.add("a", source / "link" if target != "deep" else source)
    assert not list((tmp_path / "store").glob("*"))


def test_what_can_not_be_kept_is_refused(store: InputStore, source: Path, tmp_path: Path) -> None:
    """A FIFO that nobody writes into at once, alone or in a folder; a source that is not there; a store without a
    place. What was never added is not there.
    """
    os.mkfifo(source / "fifo")
    for place in (source, source / "fifo"):
        with pytest.raises(Refused, match="not a plain file"):
            store.add("a", place)
    with pytest.raises(Refused, match="cannot be copied"):
        store.add("a", tmp_path / "nowhere")
    assert list((tmp_path / "store").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot hold inputs"):
        InputStore(tmp_path / "file/store").add("a", source / "other")
    for realm in ("", "heldout"):
        with pytest.raises(Refused, match="add it first"):
            store.locate(Input(name="a", digest="0" * 64), realm)


def test_t83_a_realm_has_files_of_its_own(store: InputStore, source: Path) -> None:
    """What the host keeps of an input's files in one realm tells nothing to another: the same bytes, other inodes."""
    item = store.add("data", source)
    plain, apart, again = store.locate(item), store.locate(item, "heldout"), store.locate(item, "heldout")
    assert contents(apart) == contents(plain) == contents(source)
    assert apart == again != store.locate(item, "trial")
    inodes = [{path.stat().st_ino for path in place.rglob("*")} for place in (plain, apart)]
    assert not inodes[0] & inodes[1]
    assert {path.stat().st_mode & 0o777 for path in apart.rglob("*") if path.is_file()} == {0o444}


@pytest.mark.parametrize("passes", [0, 3])
@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EXDEV, errno.ENOSYS, 0])
def test_t83_a_file_system_that_shares_no_blocks(
    store: InputStore, source: Path, monkeypatch: pytest.MonkeyPatch, code: int, passes: int
) -> None:
    """Where the kernel does not copy, or stops in the middle, a realm has its own files all the same, and whole."""
    genuine, left = os.copy_file_range, passes

    def copies(original: int, copy: int, count: int) -> int:
        nonlocal left
        if left and count:
            left -= 1
            return genuine(original, copy, 1)
        if code:
            raise OSError(code, os.strerror(code))
        return 0

    item = store.add("data", source)
    monkeypatch.setattr(os, "copy_file_range", copies)
    own, other = store.locate(item, "heldout"), store.locate(item)
    names = [path.relative_to(other) for path in other.rglob("*") if path.is_file()]
    assert names
    assert [(own / name).read_bytes() for name in names] == [(other / name).read_bytes() for name in names]
