"""Files of our own: read as they were meant, and on disk for good once they are said to be."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """To read. Raises OSError, also for what is no plain file: one who opens a pipe that another laid there would wait
    for ever.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no plain file; move it away", str(path))
    return os.fdopen(file, "rb")


def write_new(path: Path, data: bytes, mode: int) -> None:
    """A new file whose bytes are on disk for good; its name is when its folder is synced, too."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)


def sync(path: Path) -> None:
    """Wait until what a file holds, or the names that a folder has, are on disk for good."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
