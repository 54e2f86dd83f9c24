"""Layers of an image become a folder. They are a stranger's archive: nothing of it is written outside of that folder.

A name that is absolute or climbs is refused, so is a device, and what lies too deep; a link on the way to a file is
followed inside the folder alone, as a chamber would. Devices below /dev are left out: every chamber has a /dev of its
own.
"""

import errno
import os
import shutil
import stat
import tarfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from sandbox.errors import Refused
from sandbox.trees import FOLDER, MOST_BYTES, MOST_PARTS, remove_tree

# Made beforehand, for a runtime would make them in the folder that all chambers share.
# With the modes that they have in a chamber: runc 1.1 gives a tmpfs the mode of the folder that it is mounted on,
# whatever the mount says.
MOUNT_POINTS = {
    "proc": 0o555,
    "sys": 0o555,
    "dev": 0o755,
    "work": 0o700,
    "tmp": 0o1777,
    "inputs": 0o755,
    "nvidia": 0o755,
}
PROGRAMS = ("sh", "head", "tar")
# What an engine gives an image that sets none.
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_READ_AT_ONCE = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MOST_HEADER = 1 << 20
_HOPS = 40
_CHUNK = 1 << 20
_RAISING = stat.S_ISUID | stat.S_ISGID
_RUNNING = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_CAPABILITIES = "security.capability"
# What stays free of a disk: a small archive can unpack to any size, and others write there, too.
_SPARE = 1 << 30


class Entry(tarfile.TarInfo):
    """Refuses names and attributes so long that reading them, as the library does at once, takes all memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:  # the library's own place for this
        if self.type in _READ_AT_ONCE and self.size > _MOST_HEADER:
            raise Refused(f"the image has a header of {self.size >> 20} MiB; that is no image")
        return cast(tarfile.TarInfo, super()._proc_member(archive))  # type: ignore[misc]


class Root:
    """A folder that becomes the root of chambers. Nobody else may write into it meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[tuple[str, ...], Path] = {}

    def apply(self, layer: IO[bytes]) -> None:
        """Put one layer over what is there. Raises Refused for what no image should hold."""
        made: set[Path] = set()
        try:
            with tarfile.open(fileobj=layer, mode="r|", tarinfo=Entry) as archive:
                for entry in archive:
                    self._put(archive, entry, made)
        except tarfile.TarError as error:
            raise Refused(f"a layer of the image is no archive ({error}); save the image again") from error

    def finish(self, search_path: str = DEFAULT_PATH) -> None:
        """Raises Refused for a folder that is no root of a chamber; its programs are searched as a chamber would."""
        for name, mode in MOUNT_POINTS.items():
            place = self.folder / name
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise Refused(f"the image has something else than a folder at /{name}; take another image")
            place.mkdir(exist_ok=True)
            place.chmod(mode)
        for program in PROGRAMS:
            if not any(self.has_file(f"{folder}/{program}") for folder in search_path.split(":")):
                raise Refused(
                    f"the image has no {program} on its PATH ({search_path[:200]!a}), and no chamber starts without "
                    "sh, head and tar; take another image"
                )

    def settle(self, *, raising: bool = False) -> None:
        """After commands that ran in it as root there are only files, folders and links, for what chambers share must
        hold no pipe or socket; and no file raises who runs it, but where `raising` leaves that to the commands. Raises
        Refused for a tree that is too deep.
        """
        top = os.open(self.folder, FOLDER)
        try:
            waiting = [""]
            while waiting:
                waiting += _settled(top, waiting.pop(), raising)
        finally:
            os.close(top)

    def has_file(self, path: str) -> bool:
        """Whether a program in a chamber would find a file there."""
        try:
            return stat.S_ISREG(self._followed(path.split("/"), make=False).lstat().st_mode)
        except (OSError, Refused):
            return False

    def _put(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, made: set[Path]) -> None:
        parts = _parts(entry.name)
        if not parts:
            return
        *above, name = parts
        parent = self._followed(above)
        if name.startswith(_WHITEOUT):
            self._remove_older(parent, name, made)
            return
        place = parent / name
        self._refuse_deep(place)
        self._refuse_without_room(entry)
        if entry.isdir():
            self._put_folder(place)
        elif entry.isreg():
            self._clear(place)
            _put_file(archive, entry, place)
        elif entry.issym():
            self._clear(place)
            self._known.clear()
            place.symlink_to(entry.linkname)
        elif entry.islnk():
            self._put_link(entry, place)
        elif parts[0] == "dev":
            return
        else:
            raise Refused(f"the image holds a device or a pipe at /{'/'.join(parts)}; take another image")
        made.add(place)
        try:
            _set_owner_and_time(entry, place)
        except OverflowError as error:
            raise Refused(
                f"the image's /{entry.name[:100]} has an owner or a time that no file can have; save the image again"
            ) from error

    def _refuse_deep(self, place: Path) -> None:
        """Measured where links lead: short names can make a tree of any depth."""
        inside = place.relative_to(self.folder)
        refuse_deep(str(inside), len(inside.parts))

    def _refuse_without_room(self, entry: tarfile.TarInfo) -> None:
        disk = shutil.disk_usage(self.folder)
        if disk.free - entry.size < min(_SPARE, disk.total // 20):
            raise Refused(
                f"unpacking the image would fill the disk at /{entry.name[:100]}, of {entry.size >> 20} MiB "
                f"({disk.free >> 20} MiB are free); free some room there, or take another image"
            )

    def _put_folder(self, place: Path) -> None:
        if place.is_symlink() or not place.is_dir():
            self._clear(place)
            _new_folder(place)

    def _put_link(self, entry: tarfile.TarInfo, place: Path) -> None:
        parts = _parts(entry.linkname)
        target = self._followed(parts[:-1], make=False) / parts[-1] if parts else self.folder
        if target == place:
            return
        if not target.is_symlink() and not target.is_file():
            raise Refused(f"the image's /{entry.name} is a link to what is no file of it; save the image again")
        self._clear(place)
        os.link(target, place, follow_symlinks=False)

    def _remove_older(self, parent: Path, name: str, made: set[Path]) -> None:
        """What a layer says is gone is what those below it had; its own files stay."""
        doomed = list(parent.iterdir()) if name == _OPAQUE else [parent / _one_name(name.removeprefix(_WHITEOUT))]
        for place in doomed:
            if place not in made:
                self._clear(place)

    def _clear(self, place: Path) -> None:
        if place.is_symlink():
            place.unlink()
            self._known.clear()
        elif not place.is_dir():
            place.unlink(missing_ok=True)
        else:
            remove_tree(place)
            self._known.clear()

    def _followed(self, parts: Sequence[str], *, make: bool = True) -> Path:
        """A path inside, with links resolved as if the folder were the root. Raises Refused for one that climbs out."""
        if known := self._known.get(tuple(parts)):
            return known
        place, todo, hops = self.folder, deque(parts), 0
        while todo:
            part = todo.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                place = place.parent if place != self.folder else place
                continue
            place = place / part
            self._refuse_deep(place)
            if place.is_symlink():
                hops += 1
                if hops > _HOPS:
                    raise Refused(f"the image's links at /{'/'.join(parts)} go round in circles; take another image")
                target = str(place.readlink())
                place = self.folder if target.startswith("/") else place.parent
                todo.extendleft(reversed(target.split("/")))
            elif make and not place.exists():
                _new_folder(place)
        if make and not place.is_dir():
            raise Refused(f"the image has a file below /{'/'.join(parts)}, which is no folder; save the image again")
        if make:
            self._known[tuple(parts)] = place
        return place


def _settled(top: int, path: str, raising: bool) -> list[str]:
    """The folders in one of them."""
    folders = []
    folder = os.open(path or ".", FOLDER, dir_fd=top)
    try:
        with os.scandir(folder) as found:
            for entry in list(found):
                inside = f"{path}/{entry.name}" if path else entry.name
                refuse_deep(inside, inside.count("/") + 1)
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    folders.append(inside)
                elif stat.S_ISREG(mode):
                    if not raising:
                        _lower(folder, entry.name, mode)
                elif not stat.S_ISLNK(mode):
                    os.unlink(entry.name, dir_fd=folder)
    finally:
        os.close(folder)
    return folders


def _lower(folder: int, name: str, mode: int) -> None:
    """A program that should raise who runs it ends at once in a chamber, which gives no capabilities."""
    if mode & _RAISING:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            os.fchmod(file, stat.S_IMODE(mode) & ~_RAISING)
        finally:
            os.close(file)
    if mode & _RUNNING:
        place = f"/proc/self/fd/{folder}/{name}"
        try:
            os.getxattr(place, _CAPABILITIES, follow_symlinks=False)
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
        else:
            os.removexattr(place, _CAPABILITIES, follow_symlinks=False)


def refuse_deep(name: str, parts: int) -> None:
    """Nobody could copy it, and no path of ours would reach its end."""
    if parts > MOST_PARTS or len(os.fsencode(name)) > MOST_BYTES:
        raise Refused(
            f"the image has a file {name[:100]!r} in {parts - 1} folders, of {len(os.fsencode(name))} bytes; "
            f"{MOST_PARTS} names in one another and {MOST_BYTES} bytes are the most"
        )


def _set_owner_and_time(entry: tarfile.TarInfo, place: Path) -> None:
    if not entry.islnk():
        os.chown(place, entry.uid, entry.gid, follow_symlinks=False)
    if not (entry.issym() or entry.islnk()):
        place.chmod(entry.mode & 0o7777)  # after the owner, whose change takes the bits of set-user-ID away
        os.utime(place, (entry.mtime, entry.mtime))


def _new_folder(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)  # whatever our umask is


def _put_file(archive: tarfile.TarFile, entry: tarfile.TarInfo, place: Path) -> None:
    content = archive.extractfile(entry)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        if content:
            shutil.copyfileobj(content, target, _CHUNK)


def _parts(name: str) -> list[str]:
    if name.startswith("/") or "\0" in name:
        raise Refused(f"the image names a file {name[:100]!r}, which is not relative; save the image again")
    if len(name) > MOST_BYTES:
        raise Refused(f"the image names a file {name[:100]!r} by {len(name)} characters; take another image")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f"the image names a file {name[:100]!r}, which climbs out of it; take another image")
    return parts


def _one_name(name: str) -> str:
    if name in ("", ".", ".."):
        raise Refused("the image marks its own root as gone; save the image again")
    return name
