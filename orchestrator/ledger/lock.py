"""One orchestrator at a time works on a campaign. The kernel keeps the lock and lets go of it however its holder dies.

The lock keeps two orchestrators of one machine apart; where it fails (a file system without locks, a file removed by
hand) the ledger's epoch still does.
"""

import fcntl
import functools
import json
import os
import socket
import struct
import uuid
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.files import open_plain
from orchestrator.ledger.errors import Held, LedgerError, translating_os_errors

# The file may be removed and made again by hand between opening and locking it.
_TRIES = 3
_LOCK = "hhqqi"  # struct flock: type, whence, start, length, pid
_TEXT_BYTES = 4096


@dataclass(frozen=True)
class Holder:
    """Who works on a campaign. It is what the holder wrote about itself; that someone does is the kernel's word."""

    pid: int
    host: str
    since: str

    @property
    def is_dead(self) -> bool:
        """Known of one on this machine only."""
        if self.host != socket.gethostname() or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # somebody else's, and alive
        return False

    def __str__(self) -> str:
        return f"pid {self.pid} on host {self.host}, since {self.since}"


UNKNOWN = Holder(0, "unknown", "a moment ago")


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
        raise in_use(_holder(self.path))

    def release(self) -> None:
        if self._file is not None:
            _set(self._file, fcntl.F_UNLCK)
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
        file = open_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error
    with file:
        return (introduced(file.read(_TEXT_BYTES)) or UNKNOWN) if _is_locked(file.fileno()) else None


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
        _set(file, fcntl.F_WRLCK)
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def _set(file: int, kind: int) -> None:
    """A lock of the open file, not of the process: it goes with the last descriptor, and can be asked about."""
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack(_LOCK, kind, os.SEEK_SET, 0, 0, 0))


def _is_locked(file: int) -> bool:
    """Asks without taking: however many look, nobody is kept from starting."""
    found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(struct.unpack(_LOCK, found)[0] != fcntl.F_UNLCK)


def introduction() -> str:
    """What a holder says about itself; no other says the same, not even one of this process."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since, "id": uuid.uuid4().hex})


def introduced(text: str | bytes) -> Holder | None:
    try:
        about = json.loads(text)
        return Holder(int(about["pid"]), str(about["host"]), str(about["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def in_use(holder: Holder | None) -> Held:
    who = f" ({holder})" if holder else ""
    return Held(f"another orchestrator{who} works on this campaign; stop it or wait")


def _introduce(file: int) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, introduction().encode(), 0)


def _holder(path: Path) -> Holder | None:
    try:
        with open_plain(path) as file:
            return introduced(file.read(_TEXT_BYTES))
    except OSError:
        return None
