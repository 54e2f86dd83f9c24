"""Branches of a git repository, written by hand: those that are made together wait for the disk together.

New ones are files of their own. From time to time all of them move into the one file that git has for many. One process
makes branches, and each is made once; but anybody may have git at work in the same repository, so its locks are kept.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.files import sync, write_new

_HEADS = "refs/heads"
_PACKED = "packed-refs"
_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_VALUE = re.compile(rb"[0-9a-f]{40}\n")
_STALE_S = 3600.0  # nobody works on a list of branches for so long


def write_branches(repository: Path, commits: Mapping[str, str]) -> None:
    """New branches, by their names; on disk for good when it returns. Raises OSError."""
    heads = repository / _HEADS
    for name, commit in commits.items():
        lock = _lock_of(heads / name)
        # Who was killed just here left it behind. There is one writer, so nobody can be holding it.
        lock.unlink(missing_ok=True)
        write_new(lock, f"{commit}\n".encode(), 0o644)
    for name in commits:
        _lock_of(heads / name).rename(heads / name)
    sync(heads)


def pack_branches(repository: Path, least: int) -> None:
    """Move branches into the one file for them, where at least so many have files of their own. A reader
    finds one in either place, or in both with the same commit. Raises OSError.
    """
    heads = repository / _HEADS
    with os.scandir(heads) as entries:
        names = [it.name for it in entries if it.is_file(follow_symlinks=False) and not it.name.endswith(".lock")]
    if len(names) < least:
        return
    loose = {heads / name: value for name in names if _VALUE.fullmatch(value := (heads / name).read_bytes())}
    packed = repository / _PACKED
    lock = _lock_of(packed)
    with suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime > _STALE_S:
            lock.unlink()
    try:
        lock.touch(0o644, exist_ok=False)
    except FileExistsError:
        return  # somebody else is at it
    beside = packed.with_name(f"{_PACKED}.new")
    try:
        beside.unlink(missing_ok=True)
        write_new(beside, _joined(packed.read_bytes() if packed.exists() else b"", loose.items()), 0o644)
        beside.rename(packed)
        sync(repository)
    finally:
        beside.unlink(missing_ok=True)
        lock.unlink()
    for path, value in loose.items():
        remove_loose(path, value)


def _joined(packed: bytes, loose: Iterable[tuple[Path, bytes]]) -> bytes:
    """All lines in the order of their names. A tag's has another one behind it, which says what it stands for."""
    lines: dict[bytes, bytes] = {}
    name = b""
    for line in packed.splitlines(keepends=True):
        if line.startswith(b"^"):
            lines[name] += line
        elif not line.startswith(b"#"):
            name = line[41:-1]
            lines[name] = line
    for path, value in loose:
        name = f"{_HEADS}/{path.name}".encode()
        lines[name] = b"%s %s\n" % (value[:-1], name)
    return _HEADER + b"".join(lines[name] for name in sorted(lines))


def remove_loose(path: Path, value: bytes) -> None:
    """Unless somebody has moved the branch since, or is about to."""
    lock = _lock_of(path)
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return
    try:
        with suppress(FileNotFoundError):
            if path.read_bytes() == value:
                path.unlink()
    finally:
        lock.unlink()


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")
