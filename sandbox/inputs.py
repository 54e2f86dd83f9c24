"""Large read-only inputs: kept once under the digest of their content, mounted, never sent through stdin."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sandbox.bundle import walk_plain
from sandbox.errors import Refused
from sandbox.job import EMPTY, Input
from sandbox.scratch import scratch

CHUNK = 1024 * 1024
_AT_ONCE = 1024 * CHUNK


def default_inputs_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "blastdoor" / "inputs"


class InputStore:
    """A folder of content-addressed trees. Adding is atomic; what is there never changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, source: Path) -> Input:
        """Copy a file or a folder into the store, unless its content is there, and name it for a job."""
        paths = walk_plain(source) if source.is_dir() else [source]
        root = source if source.is_dir() else source.parent
        with self._stage() as staging:
            seal = hashlib.sha256()
            for path in sorted(paths):
                relative = path.relative_to(root)
                name_bytes = os.fsencode(relative.as_posix())
                content = _copy(path, staging / "tree" / relative)
                seal.update(f"{content} {len(name_bytes)} ".encode() + name_bytes + b"\n")
            digest = seal.hexdigest()
            self._publish(staging / "tree", digest)
        return Input(name=name, digest=digest)

    def locate(self, item: Input, realm: str = "") -> Path:
        """Where an input lies on this machine. Raises Refused when it was never added.

        For a realm that is a copy of its own, made when it is first asked for; where the file system can, it takes no
        more room. An empty folder lies beside it, for whoever mounts it as a layer.
        """
        place = self._folder / item.digest
        if not place.is_dir():
            raise Refused(f"the input {item.name} ({item.digest[:12]}) is not in the store; add it first")
        try:
            (self._folder / EMPTY).mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            raise Refused(f"{self._folder} cannot hold inputs ({error.strerror}); check its rights") from error
        return self._copy_of(place, realm).resolve() if realm else place.resolve()

    def _copy_of(self, place: Path, realm: str) -> Path:
        name = f"{place.name}.{realm}"
        if not (self._folder / name).is_dir():
            with self._stage() as staging:
                for path in walk_plain(place):
                    _clone(path, staging / "tree" / path.relative_to(place))
                self._publish(staging / "tree", name)
        return self._folder / name

    @contextmanager
    def _stage(self) -> Iterator[Path]:
        with ExitStack() as held:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                folder = held.enter_context(scratch("adding", self._folder))
            except OSError as error:
                raise Refused(f"{self._folder} cannot hold inputs ({error.strerror}); check its rights") from error
            yield folder

    def _publish(self, tree: Path, name: str) -> None:
        tree.mkdir(parents=True, exist_ok=True)
        for folder, _, _ in os.walk(tree):
            Path(folder).chmod(0o755)
        try:
            tree.rename(self._folder / name)
        except OSError:
            # Somebody else published the same content first; a folder that is not empty is never replaced.
            if not (self._folder / name).is_dir():
                raise


def _clone(source: Path, target: Path) -> None:
    """Another file of the same content. The kernel lets both share their blocks on disk where it can."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with source.open("rb") as original, target.open("wb") as copy:
            with suppress(OSError):  # not every file system does it
                while os.copy_file_range(original.fileno(), copy.fileno(), _AT_ONCE):
                    pass
            shutil.copyfileobj(original, copy)  # what is left
    except OSError as error:
        raise Refused(f"{source} cannot be copied ({error.strerror}); check rights and free space") from error
    target.chmod(0o444)


def _copy(source: Path, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    seal = hashlib.sha256()
    try:
        with (
            os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as original,
            target.open("wb") as copy,
        ):
            if not stat.S_ISREG(os.fstat(original.fileno()).st_mode):
                raise Refused(f"{source} is not a plain file; leave it out")
            while piece := original.read(CHUNK):
                seal.update(piece)
                copy.write(piece)
    except OSError as error:
        raise Refused(f"{source} cannot be copied ({error.strerror}); check rights and free space") from error
    target.chmod(0o444)
    return seal.hexdigest()
