"""Packs that are written by hand are packs to git, and joining them loses nothing."""

import os
from pathlib import Path

import pytest

from orchestrator.git import packs
from orchestrator.git.packs import BLOB, join_packs, object_id, packed, write_packs
from tests.orchestrator.git.genuine import full, git, git_bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the packs of an empty repository."""
    git(tmp_path, "init", "--quiet", "--bare", "c.git")
    return tmp_path / "c.git/objects/pack"


def packed_blobs(*blobs: bytes) -> dict[bytes, bytes]:
    return {object_id(BLOB, blob): packed(BLOB, blob) for blob in blobs}


def those_there(folder: Path) -> dict[str, int]:
    """Every object that git finds, and its length."""
    told = git(folder.parent.parent, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    return {name: int(size) for name, _, size in map(str.split, told)}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_objects_of_any_length(folder: Path) -> None:
    """Git reads the same bytes under the same name, whatever number of bytes their length takes, and each of many."""
    assert write_packs(folder, {}) == []
    assert names(folder) == set()
    blobs = [os.urandom(size) for size in (0, 1, 15, 16, 2047, 2048, 300_000)]
    (made,) = write_packs(folder, packed_blobs(*blobs, *(b"number %d" % number for number in range(1000))))
    git(folder, "verify-pack", str(made))
    repository = folder.parent.parent
    assert [git_bytes(repository, "cat-file", "blob", object_id(BLOB, blob).hex()) for blob in blobs] == blobs
    assert len(those_there(folder)) == len(blobs) + 1000
    assert git(repository, "fsck", "--full", "--strict", "--no-dangling") == ""


def test_what_is_too_much_for_one_pack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects go into as many packs as they need; one that is larger than a pack has its own."""
    monkeypatch.setattr(packs, "FULL_BYTES", 1000)
    blobs = [os.urandom(400), os.urandom(400), os.urandom(400), os.urandom(3000)]
    assert len(write_packs(folder, packed_blobs(*blobs))) == 3
    assert those_there(folder) == {object_id(BLOB, blob).hex(): len(blob) for blob in blobs}


def test_few_packs_stay(folder: Path) -> None:
    """Of many small packs a few stay, with every object that was in them, and git has nothing to complain about."""
    most = 0
    for number in range(200):
        write_packs(folder, packed_blobs(b"%d" % number, b"in all of them"))
        if number % 10 == 9:
            join_packs(folder)
        most = max(most, len(names(folder)))
    assert most <= 2 * (10 + 8)
    assert len(those_there(folder)) == 201
    assert git(folder.parent.parent, "fsck", "--full", "--strict", "--no-dangling") == ""


def test_one_is_left_alone(folder: Path) -> None:
    """There is nothing to join one pack with, nor a large one with a small one."""
    write_packs(folder, packed_blobs(os.urandom(5000)))
    assert not join_packs(folder)
    write_packs(folder, packed_blobs(b"small"))
    assert not join_packs(folder)
    assert len(names(folder)) == 4


def test_a_pack_that_holds_all_of_another(folder: Path) -> None:
    """Joined, they are the larger one, under its own name; it does not go with the other."""
    (large,) = write_packs(folder, packed_blobs(b"a", b"b"))
    write_packs(folder, packed_blobs(b"a"))
    write_packs(folder, packed_blobs(b"b"))
    assert join_packs(folder)
    assert names(folder) == {large.name, large.with_suffix(".idx").name}
    assert len(those_there(folder)) == 2


def test_full_ones_are_joined_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "FULL_OBJECTS", 2)
    for number in range(3):
        write_packs(folder, packed_blobs(b"a%d" % number, b"b%d" % number))
    assert not join_packs(folder)
    assert len(names(folder)) == 6


@pytest.mark.parametrize("suffix", [".idx", ".pack", ".keep"])
def test_a_damaged_or_kept_one_is_left_alone(folder: Path, suffix: str) -> None:
    """What cannot be trusted is copied nowhere, and not removed: it may be all that is left. A pack with another file
    beside it is not only ours.
    """
    first, *_ = [write_packs(folder, packed_blobs(b"%d" % number))[0] for number in range(3)]
    odd = first.with_suffix(suffix)
    if suffix == ".keep":
        odd.touch()
    else:
        data = bytearray(odd.read_bytes())
        data[-25] ^= 1
        odd.chmod(0o644)
        odd.write_bytes(data)
    assert join_packs(folder)
    assert {first.name, first.with_suffix(".idx").name, odd.name} <= names(folder)
    assert len(names(folder)) == 4 + (suffix == ".keep")


def test_what_git_packed_is_left_alone(folder: Path) -> None:
    """A pack with deltas is no list of whole objects."""
    repository = folder.parent.parent
    lines = b"".join(b"%d\n" % number for number in range(500))
    ids = [git_bytes(repository, "hash-object", "-w", "--stdin", given=it) for it in (lines, lines + b"more\n")]
    command = ("-c", "pack.writeReverseIndex=false", "pack-objects", str(folder / "pack"))
    made = git_bytes(repository, *command, given=b"".join(ids)).decode().strip()
    git(repository, "prune-packed")
    for number in range(3):
        write_packs(folder, packed_blobs(os.urandom(1500 + number)))
    assert join_packs(folder)
    assert f"pack-{made}.pack" in names(folder)
    assert len(those_there(folder)) == 5


def test_what_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full has no part of a pack on it, so that there is room again."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_packs(folder, packed_blobs(b"a"))
    assert names(folder) == set()
