"""Folders for what is not whole yet: who works in one holds its lock, and what nobody holds is removed."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.backends.runc.trees import remove_unmounted
from sandbox.errors import SandboxError
from sandbox.logger import logger

_MAKING = ".making-"


@contextmanager
def made(place: Path) -> Iterator[Path]:
    """A new folder there, locked for as long as we are at it, and removed in the end."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder, descriptor = _locked(place)
    try:
        yield folder
    finally:
        try:
            _removed(folder)
        finally:
            os.close(descriptor)


def sweep(place: Path) -> tuple[list[str], list[str]]:
    """Remove what processes that died had begun: what was removed, and what could not be. One that still works at it
    holds a lock.
    """
    removed: list[str] = []
    left: list[str] = []
    for folder in place.glob(f"{_MAKING}*"):
        try:
            descriptor = _opened(folder)
        except FileNotFoundError:
            continue  # its owner has just ended its work, or somebody else sweeps, too
        except OSError as error:
            _say_left(folder, error)
            left.append(folder.name)
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (removed if _removed(folder) else left).append(folder.name)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
    return removed, left


def _removed(folder: Path) -> bool:
    """What cannot be removed stays for the next sweep, and keeps nobody from their work."""
    try:
        remove_unmounted(folder)
    except (SandboxError, OSError) as error:
        _say_left(folder, error)
        return False
    return True


def _say_left(folder: Path, error: Exception) -> None:
    logger(folder=str(folder)).warning("folder.not_removed", reason=str(error))


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
