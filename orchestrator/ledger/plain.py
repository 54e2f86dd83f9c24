"""Files that another may have laid into a folder: one who opens a pipe would wait for ever."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """To read. Raises OSError, also for what is no plain file."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no plain file; move it away", str(path))
    return os.fdopen(file, "rb")
