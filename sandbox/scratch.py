"""Folders that live as long as some work, also where its process is killed.

One who works in such a folder holds a lock on it, which ends with the process, however that ends. Whoever makes the
next one removes those beside it that nobody holds.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "blastdoor-scratch-"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch(kind: str, within: Path | None = None) -> Iterator[Path]:
    """A new folder, gone afterwards: hidden in the one that is given, or where temporary files are."""
    parent = within or Path(tempfile.gettempdir())
    prefix = f".{PREFIX}" if within else PREFIX
    _remove_left(parent, prefix)
    folder, lock = _made(parent, f"{prefix}{kind}-")
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _made(parent: Path, prefix: str) -> tuple[Path, int]:
    """Until it is locked, another may take it for one that was left, and remove it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, _OPEN)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            except OSError:  # a file system without locks: nobody else can lock it, either
                return folder, lock
            if _is_at(lock, folder):
                return folder, lock
            os.close(lock)


def _remove_left(parent: Path, prefix: str) -> None:
    with suppress(OSError), os.scandir(parent) as found:
        for folder in [Path(it.path) for it in found if it.name.startswith(prefix)]:
            _remove_unheld(folder)


def _remove_unheld(folder: Path) -> None:
    with suppress(OSError):
        lock = os.open(folder, _OPEN)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_uid == os.geteuid() and _is_at(lock, folder):
                _remove(folder)
        finally:
            os.close(lock)


def _is_at(lock: int, folder: Path) -> bool:
    return folder.exists() and os.path.samestat(os.fstat(lock), folder.lstat())


def _remove(folder: Path) -> None:
    """What cannot be removed is left to the next one. Python's own way ends at folders a thousand deep."""
    with suppress(OSError, RecursionError):
        shutil.rmtree(folder)
