"""Folders of ours, private, and copies of whole trees."""

import errno
import os
import stat
import subprocess
from pathlib import Path

from sandbox.environment import child_environment
from sandbox.errors import Refused


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
