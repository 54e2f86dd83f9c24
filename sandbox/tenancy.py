"""Who is alive, for providers that keep no lease of ours.

On one place (a folder of locks on one machine) the kernel knows: an owner holds a lock on its own file as long
as its process lives, and `kill -9` lets go of it. Of owners elsewhere nothing is known, so what they made is left
alone until the end that was set when it was made; the provider ends it at that time by itself.
"""

import fcntl
import hashlib
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sandbox.logger import logger

T = TypeVar("T")
_OWNER = re.compile(r"[0-9a-f]{12}")


def default_owners_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "blastdoor" / "owners"


@dataclass(frozen=True, slots=True)
class Mark:
    """What everything at a provider carries, in tags or in its name: whose it is, where that one lives, its end."""

    owner: str
    place: str
    ends: int


class Tenancy:
    """An owner's place among the living. Taken when made, given up by `release` or by the death of the process."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder or default_owners_folder()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clock = clock
        self.place = self._name_of_place()
        self.owner = uuid.uuid4().hex[:12]
        self.path = self._folder / self.owner
        self._descriptor: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def mark(self, lifetime_s: float) -> Mark:
        return Mark(self.owner, self.place, int(self._clock() + lifetime_s) + 1)

    def is_over(self, mark: Mark) -> bool:
        """Whether nobody can still be working with it. Never true of what a living owner on this place made.

        Raises OSError where that cannot be told: a lock of another user's, or something else in its place.
        """
        if mark.place == self.place:
            return not self._lives(mark.owner)
        return self._clock() >= mark.ends

    def sorted_out(self, marked: Iterable[tuple[T, Mark]]) -> tuple[list[T], list[T]]:
        """What is over, and that of which it cannot be told, which is said: one odd lock keeps nobody from the rest."""
        over: list[T] = []
        unknown: list[T] = []
        for it, mark in marked:
            try:
                over += [it] if self.is_over(mark) else []
            except OSError as error:
                logger(owner=mark.owner).warning("owner.not_known", reason=str(error))
                unknown.append(it)
        return over, unknown

    def release(self) -> None:
        if self._descriptor is not None:
            try:
                self.path.unlink(missing_ok=True)
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    def _lives(self, owner: str) -> bool:
        if not _OWNER.fullmatch(owner):
            return True  # not a name that we gave: nothing of it is ours to end
        try:
            descriptor = os.open(self._folder / owner, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _name_of_place(self) -> str:
        """Made once; two that begin at the same time agree on the one that linked first.

        A copy is another place: a home folder that came with an image or a sync has the file, but not the locks of
        those who live where it was copied from.
        """
        path = self._folder / "place"
        if not path.exists():
            draft = self._folder / f".place-{uuid.uuid4().hex}"
            draft.write_text(uuid.uuid4().hex)
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        known = (path.read_text().strip(), str(path.stat().st_ino), _machine(), socket.gethostname())
        return hashlib.sha256("\n".join(known).encode()).hexdigest()[:8]


def _machine() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""
