"""Trees of files that others made: walked and removed without recursion, and never through a link.

A tree may be deeper than Python's stack, its paths longer than the kernel takes, and a folder of it swapped for a link
meanwhile. So nothing here calls itself, and no path is longer than one name.
"""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from sandbox.errors import Unavailable
from sandbox.mounts import MOUNTS, mounts_of

# More than any honest tree has. A path within them fits into what the kernel takes, wherever the tree is kept.
MOST_PARTS = 256
MOST_BYTES = 2048
_MEETINGS = 1000
# How one is opened: never through a link in its place.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Harmless when it is gone. Raises OSError for what cannot be removed.

    Whatever lies deeper than one folder is moved up first, so that two descriptors are enough. Two that clean up may
    meet: what is gone is passed over.
    """
    with suppress(FileNotFoundError):
        top = os.open(folder, FOLDER)
        try:
            for left in reversed(range(_MEETINGS)):
                _empty(top)
                try:
                    folder.rmdir()
                    return
                except OSError as error:  # the other one has just moved something up
                    if error.errno != errno.ENOTEMPTY or not left:
                        raise
        finally:
            os.close(top)


def remove_unmounted(folder: Path) -> None:
    """Harmless when it is gone. Raises Unavailable, and removes nothing, while something is mounted in there."""
    if mounted := mounts_below(folder.parent.resolve() / folder.name):
        first = os.fsencode(mounted[0]).decode("utf-8", "backslashreplace")  # a name that no log can write is none
        raise Unavailable(f"{first} is mounted below {folder}; unmount it, nothing is removed through a mount")
    remove_tree(folder)


def mounts_below(folder: Path) -> list[str]:
    """At it or below, in our own namespace."""
    table = MOUNTS.read_bytes()
    if b" " + os.fsencode(folder) not in table and b"\\" not in table:
        return []
    found = (it.folder for it in mounts_of(table))
    return [it for it in found if it == str(folder) or it.startswith(f"{folder}{os.sep}")]


def _empty(top: int) -> None:
    waiting, moved, mark = _without_files(top), 0, ""
    while waiting:
        name = waiting.pop()
        with suppress(FileNotFoundError):
            inner = os.open(name, FOLDER, dir_fd=top)
            try:
                for below in _without_files(inner):
                    mark = mark or secrets.token_hex(8)
                    moved += 1
                    with suppress(FileNotFoundError):
                        os.rename(below, f"{mark}.{moved}", src_dir_fd=inner, dst_dir_fd=top)
                        waiting.append(f"{mark}.{moved}")
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _without_files(folder: int) -> list[str]:
    """Remove all but the folders in it, and name those."""
    folders: list[str] = []
    with os.scandir(folder) as found:
        for entry in list(found):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.name, dir_fd=folder)
    return folders
