"""One orchestrator at a time works on a campaign. The kernel keeps the lock and lets go of it however its holder dies.

The lock keeps two orchestrators of one machine apart; where it fails (a file system without locks, a file removed by
hand) the ledger's epoch still does.
"""

import fcntl
import functools
import json
import os
import socket
import time
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.ledger.errors import Held, LedgerError, translating_os_errors

# Whoever looks with held_by() takes the lock for some microseconds; that is not a holder.
_TRIES = 60
_PAUSE_S = 0.01
_TEXT_BYTES = 4096


@dataclass(frozen=True)
class Holder:
    """Who works on a campaign. It is what the holder wrote about itself; that someone does is the kernel's word."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"pid {self.pid} on host {self.host}, since {self.since}"


class CampaignLock:
    """Held from `acquire` (or `with`) to `release`. Children do not inherit it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def __enter__(self) -> "CampaignLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Raises Held, with who it is, when another one works."""
        if self._file is not None:
            raise LedgerError(f"{self.path} is held by this process already")
        for _ in range(_TRIES):
            with translating_os_errors(self.path):
                self._file = _locked(self.path)
            if self._file is not None:
                _HELD.add(self)
                _close_in_children()
                _introduce(self._file)
                return
            time.sleep(_PAUSE_S)
        holder = _holder(self.path)
        who = f" ({holder})" if holder else ""
        raise Held(f"another orchestrator{who} works on this campaign; stop it or wait")

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """For a child after a fork: it leaves the lock to its parent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            _HELD.discard(self)


def held_by(path: Path) -> Holder | None:
    """Who works on the campaign now; None when nobody does. A holder that is just starting has pid 0."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(path) or Holder(0, "unknown", "a moment ago")
    finally:
        os.close(file)
    return None


_HELD: "weakref.WeakSet[CampaignLock]" = weakref.WeakSet()


@functools.cache
def _close_in_children() -> None:
    """A fork shares the lock with its parent and would keep it beyond the parent's death. Set once, for good."""
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    for lock in list(_HELD):
        lock.forget()


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of the file that is at this path now; None when another has it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def _introduce(file: int) -> None:
    about = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(about).encode(), 0)


def _holder(path: Path) -> Holder | None:
    try:
        with path.open("rb") as file:
            about = json.loads(file.read(_TEXT_BYTES))
        return Holder(int(about["pid"]), str(about["host"]), str(about["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
