"""Files of a candidate, put into a person's own folder: all of them or none, never through a link, each one whole.

Every folder is opened by descriptor, one name at a time and refusing links, so nothing that is swapped meanwhile leads
a write elsewhere. Everything is checked and written beside its place first; only then are names exchanged.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.change import File, Tree
from orchestrator.text import printable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BITS = 0o777
_EXECUTE = 0o111


class NotPlaced(Exception):
    """Nothing was written, unless the message says which files were; it names the file and what to do."""


@dataclass(frozen=True)
class Present:
    """A file as it stands."""

    data: bytes
    mode: int


def touched(old: Tree, new: Tree) -> dict[str, File | None]:
    """What differs, path by path; None where the file is gone."""
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return {path: new.get(path) for path in paths}


def place(root: Path, old: Tree, new: Tree) -> list[str]:
    """Turn `old` into `new` where they differ; the paths that were written, none where all is there already.

    Raises NotPlaced where a file is not as in `old`, or cannot be written.
    """
    changes = touched(old, new)
    with _opening(root) as top:
        present = {path: read_file(top, path) for path in changes}
        if all(_is_done(present[path], old.get(path), file) for path, file in changes.items()):
            return []
        for path in changes:
            if not _same(present[path], old.get(path)):
                raise NotPlaced(_why_not(path, present[path], old.get(path)))
        modes = {path: _mode(present[path], old.get(path), file) for path, file in changes.items() if file}
        _write(top, changes, modes)
    return list(changes)


def is_placed(root: Path, old: Tree, new: Tree) -> bool:
    """Whether all that differs is there as in `new`. Raises NotPlaced where that cannot be seen."""
    with _opening(root) as top:
        return all(_is_done(read_file(top, path), old.get(path), file) for path, file in touched(old, new).items())


def read_file(top: int, path: str) -> Present | None:
    """A plain file below the folder, None where there is none. Raises NotPlaced for a link or anything else."""
    with ExitStack() as stack:
        folder = _descend(stack, top, path, make=False)
        if folder is None:
            return None
        try:
            descriptor = os.open(path.rpartition("/")[2], _READ, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotPlaced(f"{printable(path)} is a link or cannot be read ({error.strerror}); move it away") from None
        with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise NotPlaced(f"{printable(path)} is no plain file; move it away")
            return Present(stream.read(), stat.S_IMODE(found.st_mode))


@contextmanager
def _opening(root: Path) -> Iterator[int]:
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NotPlaced(f"{root} is not a folder that can be opened ({error.strerror})") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _descend(stack: ExitStack, top: int, path: str, *, make: bool) -> int | None:
    """The folder that a path lies in; None where it is missing and not to be made."""
    folder = top
    names = path.split("/")
    if any(name in ("", ".", "..") or "\0" in name or name.lower() == ".git" for name in names):
        raise NotPlaced(f"{printable(path)} is no plain path inside the folder")
    for name in names[:-1]:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
                stack.callback(_remove_if_empty, name, folder)
        try:
            folder = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotPlaced(
                f"{printable(path)}: {printable(name)} is a link or no folder ({error.strerror}); move it away"
            ) from None
        stack.callback(os.close, folder)
    return folder


def _same(present: Present | None, wanted: File | None) -> bool:
    if present is None or wanted is None:
        return present is None and wanted is None
    return present.data == wanted.data


def _is_done(present: Present | None, old: File | None, wanted: File | None) -> bool:
    """Whether the file is as wanted already; its mode counts where that is what the candidate changed."""
    if not _same(present, wanted):
        return False
    asks_mode = old is not None and wanted is not None and old.executable != wanted.executable
    return not (asks_mode and present and wanted) or bool(present.mode & _EXECUTE) == wanted.executable


def _why_not(path: str, present: Present | None, old: File | None) -> str:
    name = printable(path)
    if present is None:
        return f"{name} is missing; it was there when the run began. Nothing was written"
    if old is None:
        return f"{name} exists; it was not there when the run began. Nothing was written"
    return f"{name} was changed since the run began. Nothing was written; --dry-run prints the change to apply by hand"


def _write(top: int, changes: Mapping[str, File | None], modes: Mapping[str, int | None]) -> None:
    with ExitStack() as stack:
        folders: dict[str, int] = {}
        beside: dict[str, str] = {}
        for path, file in changes.items():
            try:
                folder = _descend(stack, top, path, make=file is not None)
                if folder is None:
                    raise NotPlaced(f"{printable(path)}: its folder is gone; nothing was written")
                folders[path] = folder
                if file is not None:
                    beside[path] = _write_beside(stack, folder, file, modes[path])
            except OSError as error:
                raise NotPlaced(f"{printable(path)} cannot be written ({error.strerror}); nothing was") from None
        done: list[str] = []
        for path in changes:
            _exchange(folders[path], path, beside.get(path), done)


def _write_beside(stack: ExitStack, folder: int, file: File, mode: int | None) -> str:
    name = f".blastdoor-{secrets.token_hex(8)}"
    descriptor = os.open(name, _WRITE, 0o777 if file.executable else 0o666, dir_fd=folder)

    def clean() -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)

    stack.callback(clean)
    with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
        stream.write(file.data)
        stream.flush()
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    return name


def _mode(present: Present | None, old: File | None, wanted: File) -> int | None:
    """The mode that is there stays; only where the candidate changed whether the file can be run, that follows. No
    setuid bit survives new content. None leaves a new file to the umask.
    """
    if present is None:
        return None
    mode = present.mode & _BITS
    if old is not None and old.executable == wanted.executable:
        return mode
    return mode | ((mode & 0o444) >> 2) if wanted.executable else mode & ~_EXECUTE


def _remove_if_empty(name: str, folder: int) -> None:
    """A folder that was made for nothing."""
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=folder)


def _exchange(folder: int, path: str, beside: str | None, done: list[str]) -> None:
    name = path.rpartition("/")[2]
    try:
        if beside is None:
            os.unlink(name, dir_fd=folder)
        else:
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        written = f"written before it: {', '.join(map(printable, done))}" if done else "nothing was written"
        raise NotPlaced(f"{printable(path)} cannot be replaced ({error.strerror}); {written}") from None
    done.append(path)
