"""Makes, copies and removes folders of ours, and never what is mounted below them."""

import errno
import os
import stat
import subprocess
from pathlib import Path

from sandbox.environment import child_environment
from sandbox.errors import Refused, Unavailable
from sandbox.trees import remove_tree

_MOUNTS = Path("/proc/self/mountinfo")


def remove_unmounted(folder: Path) -> None:
    """Harmless when it is gone. Raises Unavailable, and removes nothing, while something is mounted in there."""
    if mounted := mounts_below(folder.parent.resolve() / folder.name):
        raise Unavailable(f"{mounted[0]} is mounted below {folder}; unmount it, nothing is removed through a mount")
    remove_tree(folder)


def make_private(folder: Path) -> None:
    """Others must not reach the programs of images in there, nor put something in their place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise Refused(f"{folder} belongs to another user; name a folder of your own")
    if stat.S_IMODE(found.st_mode) & 0o077:
        try:
            folder.chmod(0o700)
        except OSError as error:
            if error.errno != errno.EROFS:  # nobody puts anything there
                raise


def copied_tree(source: Path, target: Path) -> Path:
    """Files of their own, with owners, modes and links as they are. Raises Refused where there is no room."""
    command = ["cp", "-a", "--reflink=auto", "--", str(source), str(target)]
    done = subprocess.run(command, env=child_environment(), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
        raise Refused(f"no copy of an image could be made ({said}); check free space and rights")
    return target


def mounts_below(folder: Path) -> list[str]:
    """At it or below, in our own namespace, as the kernel writes them."""
    found: list[str] = []
    mounts = _MOUNTS.read_text()
    if f" {folder}" not in mounts and "\\" not in mounts:
        return found
    for line in mounts.splitlines():
        target = _plain(line.split()[4])
        if target == str(folder) or target.startswith(f"{folder}{os.sep}"):
            found.append(target)
    return found


def _plain(path: str) -> str:
    """Blanks and the like are written as octal numbers there."""
    return path.encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace") if "\\" in path else path
