"""Logs of chambers at work, as files that come and go: how long each is, and some bytes of one."""

import os
import re
import stat
from pathlib import Path

_NAME = re.compile(r"[0-9.]{1,300}-(?:[0-9]{1,9}|agent)")
_SUFFIX = ".log"


def live_logs(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIX) and entry.is_file(follow_symlinks=False):
                    found[entry.name.removesuffix(_SUFFIX)] = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return found  # a chamber that ends takes its log along
    return dict(sorted(found.items()))


def live_part(folder: Path, name: str, start: int, size: int) -> tuple[bytes, int] | None:
    """Some bytes and how many there are; None where it is gone, is no plain file, or could be none of ours."""
    if not _NAME.fullmatch(name):
        return None
    try:
        file = os.open(folder / f"{name}{_SUFFIX}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(file)
        return (os.pread(file, size, start), found.st_size) if stat.S_ISREG(found.st_mode) else None
    finally:
        os.close(file)
