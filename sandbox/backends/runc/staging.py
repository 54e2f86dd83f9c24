"""Folders for what is not whole yet: who works in one holds its lock, and what nobody holds is removed."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.backends.runc.trees import remove_tree

_MAKING = ".making-"


@contextmanager
def made(place: Path) -> Iterator[Path]:
    """A new folder there, locked for as long as we are at it, and removed in the end."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder, descriptor = _locked(place)
    try:
        yield folder
    finally:
        remove_tree(folder)
        os.close(descriptor)


def sweep(place: Path) -> list[str]:
    """Remove what processes that died had begun; one that still works at it holds a lock."""
    removed = []
    for folder in place.glob(f"{_MAKING}*"):
        try:
            descriptor = _opened(folder)
        except FileNotFoundError:
            continue  # its owner has just ended its work, or somebody else sweeps, too
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(folder)
            removed.append(folder.name)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
    return removed


def _locked(place: Path) -> tuple[Path, int]:
    """A sweep of somebody else may come between a folder and its lock: then there is another one."""
    while True:
        folder = place / f"{_MAKING}{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        try:
            descriptor = _opened(folder)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():
            return folder, descriptor
        os.close(descriptor)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
