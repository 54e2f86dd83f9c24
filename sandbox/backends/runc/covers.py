"""Files of a chamber's own: what several chambers read is mounted once more for each, as the one layer of an overlay.

The kernel keeps locks and watches by inode, and an overlay has inodes of its own; only pages stay shared. The mount is
in a namespace that begins with a thread of ours and goes with the chamber, so nobody has to remove it, and it is
nowhere else to be seen.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sandbox.errors import Refused, Unavailable
from sandbox.posture import overlay_layers

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_READ_ONLY, _PRIVATE = 0x1, 0x44000

T = TypeVar("T")


def covered(work: Callable[[], T], folders: Mapping[Path, Path], namespace: int | None = None) -> T:
    """Do some work where each folder is covered by an overlay of itself, over the folder that it is given with.

    That one is empty as a rule: it is there because an overlay wants two. Processes that are started in there stay in
    there. `namespace` is a descriptor of the mount namespace to begin with, if that is not ours. Raises Refused where
    the kernel mounts no overlay, Unavailable for a folder that is not there.
    """

    def alone() -> T:
        called("unshare", _CLONE_FS)
        if namespace is not None:
            called("setns", namespace, _CLONE_NEWNS)
        called("unshare", _CLONE_NEWNS)
        called("mount", b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None)
        for folder, below in folders.items():
            _cover(folder, below)
        return work()

    # A thread that has gone elsewhere cannot always come back.
    with ThreadPoolExecutor(1, thread_name_prefix="covered") as thread:
        return thread.submit(alone).result()


def _cover(folder: Path, below: Path) -> None:
    place, layers = os.fsencode(folder), os.fsencode(overlay_layers(str(folder), str(below)))
    try:
        called("mount", b"overlay", place, b"overlay", ctypes.c_ulong(_READ_ONLY), layers)
    except OSError as error:
        if error.errno not in (errno.ENODEV, errno.EPERM, errno.EINVAL):
            raise Unavailable(f"start: {folder} cannot be mounted ({error.strerror})") from error
        raise Refused(
            f"this kernel mounts no overlay of {folder} ({error.strerror}), and without one chambers share its locks; "
            "load the module (modprobe overlay; rootless: Linux 5.11 or newer), or use --backend docker"
        ) from error


def called(name: str, *words: object) -> None:
    if getattr(_LIBC, name)(*words):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
