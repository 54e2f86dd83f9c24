"""Folders that live as long as some work, also where its process is killed.

One who works in such a folder holds a lock on it, which ends with the process, however that ends. Whoever makes the
next one removes those beside it that nobody holds.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.logger import logger
from sandbox.trees import FOLDER, remove_unmounted

PREFIX = "blastdoor-scratch-"


@contextmanager
def scratch(kind: str, within: Path | None = None) -> Iterator[Path]:
    """A new folder, gone afterwards: hidden in the one that is given, or where temporary files are."""
    sweep(within)
    folder, lock = _made(_parent(within), f"{_prefix(within)}{kind}-")
    try:
        yield folder
    finally:
        try:
            _is_removed(folder)
        finally:
            os.close(lock)


def sweep(within: Path | None = None) -> tuple[list[str], list[str]]:
    """Remove what processes of this user that died had begun there: what was removed, and what could not be."""
    removed: list[str] = []
    left: list[str] = []
    for folder in _ours(_parent(within), _prefix(within)):
        try:
            lock = os.open(folder, FOLDER)
        except FileNotFoundError:
            continue  # its owner has just ended its work, or somebody else sweeps, too
        except OSError as error:
            _say_left(folder, error)
            left.append(folder.name)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(lock, folder):
                (removed if _is_removed(folder) else left).append(folder.name)
        except OSError:
            continue  # somebody works in it, or nobody can tell
        finally:
            os.close(lock)
    return removed, left


def _parent(within: Path | None) -> Path:
    return within or Path(tempfile.gettempdir())


def _prefix(within: Path | None) -> str:
    return f".{PREFIX}" if within else PREFIX


def _ours(parent: Path, prefix: str) -> list[Path]:
    found: list[Path] = []
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.startswith(prefix) and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    found += [Path(entry.path)] if entry.is_dir(follow_symlinks=False) else []
    return found


def _made(parent: Path, prefix: str) -> tuple[Path, int]:
    """Until it is locked, another may take it for one that was left, and remove it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, FOLDER)
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


def _is_at(lock: int, folder: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), folder.lstat())
    return False


def _is_removed(folder: Path) -> bool:
    """What cannot be removed stays for the next sweep, and keeps nobody from their work."""
    try:
        remove_unmounted(folder)
    except (SandboxError, OSError) as error:
        _say_left(folder, error)
        return False
    return True


def _say_left(folder: Path, error: Exception) -> None:
    logger(folder=str(folder)).warning("folder.not_removed", reason=str(error))
