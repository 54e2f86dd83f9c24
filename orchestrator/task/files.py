"""Reading what a task consists of: plain files only, each opened once, within a cap.

A link is refused wherever it stands: it could lead out of its folder, and into the judge's.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from orchestrator.change import File, Tree
from orchestrator.task.errors import Key, Wrong
from sandbox.units import format_size

FILES = 100_000
INPUT_FILES = 1_000_000
FOLDERS_DEEP = 256
CHUNK = 1 << 20

_LEFT_OUT = frozenset([".git", "__pycache__", ".blastdoor"])


def plain_names(
    folder: Path,
    key: Key,
    *,
    everything: bool = False,
    cap: int = FILES,
    leaves_out: Callable[[str], bool] = lambda _: False,
) -> list[str]:
    """The files under a folder, sorted; those that tools leave (.git, __pycache__, …) only if everything is wanted.

    What `leaves_out` says of a path is not looked at, a folder with all that is in it.
    """
    found: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=_raise):
        # The walk goes as deep as its stack, which a tree can be made to exceed.
        if parent.count(os.sep) - str(folder).count(os.sep) >= FOLDERS_DEEP:
            raise Wrong(key, f"{folder} has more than {FOLDERS_DEEP} folders in one another; make it flatter")
        if not everything:
            folders[:] = [name for name in folders if name not in _LEFT_OUT]
            names = [name for name in names if name not in _LEFT_OUT and not name.endswith(".pyc")]
        folders[:] = [name for name in folders if not leaves_out(_beneath(folder, parent, name))]
        names = [name for name in names if not leaves_out(_beneath(folder, parent, name))]
        for name in (*folders, *names):
            if Path(parent, name).is_symlink():
                raise Wrong(key, f"{Path(parent, name)} is a link; put what it points to in its place")
        found += [_beneath(folder, parent, name) for name in names]
        if len(found) > cap:
            raise Wrong(key, f"{folder} has more than {cap:,} files; leave some out")
    return sorted(found)


def _beneath(folder: Path, parent: str, name: str) -> str:
    return Path(parent, name).relative_to(folder).as_posix()


def read_tree(folder: Path, names: Iterable[str], key: Key, byte_cap: int, cap_key: str) -> Tree:
    """These files of a folder, as a value."""
    files: dict[str, File] = {}
    left = byte_cap
    for name in names:
        _check_name(name, key)
        with _opened(folder / name, key) as file:
            data = file.read(left + 1)
            executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
        left -= len(data)
        if left < 0:
            size = format_size(byte_cap)
            raise Wrong(key, f"{folder} has more than {size}; raise {cap_key}, or give large data as [inputs]")
        files[name] = File(data, executable)
    return Tree(files)


def input_digest(path: Path, key: Key = ()) -> str:
    """SHA-256 over names and contents of a file or folder, read piece by piece; the one of the sandbox's store."""
    folder = path if path.is_dir() else path.parent
    names = plain_names(path, key, everything=True, cap=INPUT_FILES) if path.is_dir() else [path.name]
    seal = hashlib.sha256()
    for name in _in_store_order(names):
        content = hashlib.sha256()
        with _opened(folder / name, key) as file:
            while piece := file.read(CHUNK):
                content.update(piece)
        raw = os.fsencode(name)
        seal.update(f"{content.hexdigest()} {len(raw)} ".encode() + raw + b"\n")
    return seal.hexdigest()


def _in_store_order(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: name.split("/"))


def _check_name(name: str, key: Key) -> None:
    """What would be refused when the chamber's bundle is packed is refused here, where a person can rename it."""
    odd = not name.isprintable() or "\\" in name or any(part.startswith("-") for part in name.split("/"))
    if odd:
        raise Wrong(key, f"the file name {name!a} is unsafe; rename it")


def _opened(path: Path, key: Key) -> BinaryIO:
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Wrong(key, f"{path} is not a plain file; leave it out")
    return file


def _raise(error: OSError) -> None:
    raise error
