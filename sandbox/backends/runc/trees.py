"""Copies and removes folders of ours, and never what is mounted below them."""

import os
import shutil
import subprocess
from pathlib import Path

from sandbox.environment import child_environment
from sandbox.errors import Refused, Unavailable

_MOUNTS = Path("/proc/self/mountinfo")


def remove_tree(folder: Path) -> None:
    """Harmless when it is gone. Raises Unavailable, and removes nothing, while something is mounted in there."""
    try:
        real = folder.resolve(strict=True)
    except FileNotFoundError:
        return
    if mounted := mounts_below(real):
        raise Unavailable(f"{mounted[0]} is mounted below {folder}; unmount it, nothing is removed through a mount")
    shutil.rmtree(folder, ignore_errors=False, onerror=_ignore_gone)


def remove_own(folder: Path) -> None:
    """What we and a runtime wrote for one chamber. Nothing is mounted there: a runtime's mounts are in its namespace.

    To ask the kernel for all mounts waits for everybody who is making one.
    """
    shutil.rmtree(folder, ignore_errors=False, onerror=_ignore_gone)


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


def _ignore_gone(_function: object, _path: str, failure: tuple[type[BaseException], BaseException, object]) -> None:
    """Two that clean up may meet."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]
