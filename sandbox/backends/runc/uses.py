"""Who uses an unpacked image: a lock in a file of its own, which the kernel lets go of when its holder dies.

The file is not in the image: a chamber, whose root that is, must not be able to hold it.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Uses:
    """Locks by the name of what is used. Their empty files stay: one that went could be held by two."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def hold(self, name: str) -> None:
        """Until `release`, or until we die. Waits for somebody who is just removing it."""
        if name in self._held:
            return
        try:
            descriptor = self._opened(name)
        except OSError as error:
            if error.errno == errno.EROFS:
                return  # nobody removes anything there
            raise
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if self._held.setdefault(name, descriptor) != descriptor:
            os.close(descriptor)  # another thread was first

    def release(self) -> None:
        while self._held:
            os.close(self._held.popitem()[1])

    @contextmanager
    def shared(self, name: str) -> Iterator[None]:
        descriptor = self._opened(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Whether nobody uses it; then nobody does before this is over."""
        descriptor = self._opened(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        try:
            yield free
        finally:
            os.close(descriptor)

    def _opened(self, name: str) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
