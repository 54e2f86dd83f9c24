"""The one archive that goes in. Packed from trees that we trust, deterministic, and never larger than its cap."""

import hashlib
import os
import stat
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath

from sandbox.errors import Refused
from sandbox.job import Limits
from sandbox.scratch import scratch
from sandbox.trees import MOST_PARTS
from sandbox.units import format_size
from sandbox.wire.faults import WireFault
from sandbox.wire.harvest import safe_name

FOLDERS = ("src", "out", "tmp")
PAGE = 4096
ENTRY_BYTES = 1536
SPARE_ENTRIES = 8


@dataclass(frozen=True)
class Bundle:
    """Files for a chamber's /work/src. `executable` names those that get an x bit."""

    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()

    @classmethod
    def of(cls, **files: str | bytes) -> "Bundle":
        """A bundle of a few files given by name, for tests and examples."""
        return cls({name: text.encode() if isinstance(text, str) else text for name, text in files.items()})

    @classmethod
    def from_folder(cls, folder: Path, *, byte_cap: int, file_cap: int = 100_000) -> "Bundle":
        """Every plain file under a folder. A link or a special file is refused: it could lead out of the folder."""
        files: dict[str, bytes] = {}
        executable: set[str] = set()
        total = 0
        for path in sorted(walk_plain(folder)):
            name = path.relative_to(folder).as_posix()
            data, is_executable = _read_plain(path, byte_cap - total)
            total += len(data)
            if len(files) >= file_cap:
                raise Refused(f"{folder} has more than {file_cap} files; leave some out")
            files[name] = data
            if is_executable:
                executable.add(name)
        return cls(files, frozenset(executable))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, modes and contents."""
        seal = hashlib.sha256()
        for name in sorted(self.files):
            content = hashlib.sha256(self.files[name]).hexdigest()
            raw = name.encode("utf-8", "surrogatepass")
            seal.update(f"{content} {'x' if name in self.executable else '-'} {len(raw)} ".encode() + raw + b"\n")
        return seal.hexdigest()

    def pack(self, byte_cap: int, scripts: Mapping[str, bytes] | None = None) -> bytes:
        """The archive: our files under src/, scripts of the boot protocol beside it.

        Raises Refused when it is over its cap or a name is unsafe.
        """
        size = sum(map(len, self.files.values()))
        if size > byte_cap:
            raise Refused(f"the bundle has {format_size(size)}, its cap is {format_size(byte_cap)}; raise bundle_bytes")
        self._refuse_file_as_folder()
        blocks = [_header(folder, tarfile.DIRTYPE, 0o755, 0) for folder in FOLDERS]
        for name in sorted(self.files):
            mode = 0o755 if name in self.executable else 0o644
            blocks += member(f"src/{_checked(name)}", self.files[name], mode)
        for name, script in (scripts or {}).items():
            blocks += member(name, script)
        return closed(blocks)

    def check_room(self, limits: Limits) -> None:
        """Refuse a bundle that would not fit when unpacked: files take whole pages there, and each its bookkeeping."""
        entries = len(self.files) + len(self._folders) + bool(self.files) + SPARE_ENTRIES
        if entries > limits.work_inodes:
            raise Refused(f"the bundle has {entries} files and folders; raise work_inodes")
        room = entries * ENTRY_BYTES + sum(-(-len(data) // PAGE) * PAGE for data in self.files.values())
        if room > limits.work_bytes:
            raise Refused(f"the bundle needs {format_size(room)} of the work directory; raise work_bytes")
        if 2 * room > limits.memory:
            raise Refused(f"the bundle needs {format_size(room)}, over half of the memory it is kept in; raise memory")

    @cached_property
    def _folders(self) -> frozenset[str]:
        """Those that its files lie in, below its own."""
        found: set[str] = set()
        for name in self.files:
            folder = str(PurePosixPath(name)).rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    def _refuse_file_as_folder(self) -> None:
        if both := sorted(self._folders & set(self.files)):
            raise Refused(f"{both[0]!r} is a file and a folder of the bundle; rename one")


def check_outputs_folder(folder: Path) -> None:
    """Refuse early what `write_outputs` would refuse after the work is done."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise Refused(f"{folder} exists and is not an empty folder; name a new one")
    nearest = next(parent for parent in folder.absolute().parents if parent.exists())
    if not os.access(nearest, os.W_OK):
        raise Refused(f"{nearest} cannot be written; name another folder")


def write_outputs(outputs: Mapping[str, bytes], folder: Path) -> None:
    """Write harvested files as a new folder, whole or not at all. Links in the way are never followed."""
    check_outputs_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch("outputs", folder.parent) as beside:
            staging = beside / "outputs"
            staging.mkdir()
            for name, data in outputs.items():
                target = staging / _checked(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            staging.rename(folder)
    except OSError as error:
        why = f"{error.filename or folder} cannot be written ({error.strerror})"
        raise Refused(f"{why}; name another folder") from error


def walk_plain(folder: Path) -> list[Path]:
    """Every file under a folder; a link among them is refused."""
    if not folder.is_dir():
        raise Refused(f"{folder} is not a folder; name an existing one")
    found: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=_cannot_read):
        # The walk goes as deep as its stack, which a tree can be made to exceed.
        if parent.count(os.sep) - str(folder).count(os.sep) >= MOST_PARTS:
            raise Refused(f"{folder} has more than {MOST_PARTS} folders in one another; name a flatter one")
        for name in [*folders, *names]:
            path = Path(parent, name)
            if path.is_symlink():
                raise Refused(f"{path} is a link; it could lead out of the folder, so replace it by its content")
        found += [Path(parent, name) for name in names]
    return found


def _cannot_read(error: OSError) -> None:
    raise Refused(f"{error.filename} cannot be read ({error.strerror}); check its rights")


def _read_plain(path: Path, left: int) -> tuple[bytes, bool]:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise Refused(f"{path} is not a plain file; leave it out")
            data = file.read(left + 1)
    except OSError as error:
        _cannot_read(error)
        raise
    if len(data) > left:
        raise Refused(
            f"the folder does not fit into the bundle's cap at {path.name}; raise bundle_bytes or use an input"
        )
    return data, bool(mode & stat.S_IXUSR)


def _checked(name: str) -> str:
    try:
        safe = safe_name(name)
    except WireFault as fault:
        raise Refused(f"the file name {fault.detail} is unsafe; rename it") from None
    if not safe:
        raise Refused("a file without a name; rename it")
    return safe


def member(name: str, data: bytes, mode: int = 0o644) -> list[bytes]:
    """A file in an archive."""
    return [_header(name, tarfile.REGTYPE, mode, len(data)), data, bytes(-len(data) % tarfile.BLOCKSIZE)]


def closed(blocks: Sequence[bytes]) -> bytes:
    """The archive of these, with its end."""
    length = sum(map(len, blocks)) + 2 * tarfile.BLOCKSIZE
    return b"".join([*blocks, bytes(2 * tarfile.BLOCKSIZE + -length % tarfile.RECORDSIZE)])


@lru_cache(maxsize=8192)
def _header(name: str, kind: bytes, mode: int, size: int) -> bytes:
    """A campaign packs the same names again and again, and making a header costs more than the rest."""
    header = tarfile.TarInfo(name)
    header.type, header.mode, header.size = kind, mode, size
    return header.tobuf(tarfile.GNU_FORMAT)
