"""Bytes under the name of their SHA-256: outputs, logs, diffs. An event names them, so they must outlive a power cut.

An event may name a digest only after its bytes are on disk. So either every `put` waits for the disk, or (with
`deferred`) puts are gathered, and one `sync` before the append waits for all of them. Much at once is for `keep_files`,
in a thread: it waits for its own bytes, and nobody else waits for them.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.files import open_plain, sync
from orchestrator.ledger.chain import canonical
from orchestrator.ledger.errors import Corrupt, LedgerError, Missing, translating_os_errors
from orchestrator.units import format_size

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FORMAT = "blastdoor files 1"
# What every manifest starts with, since its keys are sorted. A blob of a candidate may start so too: then the
# files that it names are kept for nothing, and no more.
_MANIFEST = b'{"files":{'


@dataclass(frozen=True)
class Usage:
    count: int
    bytes: int


@dataclass(frozen=True)
class Stored:
    """A list of files, by its digest; `bytes` are those of the files and of the list itself."""

    digest: str
    bytes: int


@dataclass(frozen=True)
class Collected:
    count: int
    bytes: int


class Artifacts:
    """Made where it is missing. Safe to use from several threads and processes. What is `longest` is the most bytes of
    one that are read at once, for one who looks at folders of others.
    """

    def __init__(self, folder: Path, *, deferred: bool = False, longest: int | None = None) -> None:
        self._folder = folder
        self._longest = longest
        self._deferred = deferred
        self.pending: set[Path] = set()  # put, and not known to be on disk
        self._settled: set[Path] = set()  # folders that are known to outlive a power cut
        self._guard = threading.Lock()
        self._flushing = threading.Lock()
        with translating_os_errors(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, data: bytes) -> str:
        """The digest. Raises Full, and then nothing of it is left."""
        digest, path = self._written(data)
        with self._guard:
            # Also when it was there: who put it may have been killed before its sync.
            self.pending.add(path)
        if not self._deferred:
            self.sync()
        return digest

    def put_files(self, files: Mapping[str, bytes]) -> str:
        """The digest of a manifest. Names are kept as they are; they are no paths here."""
        members = {name: [self.put(data), len(data)] for name, data in files.items()}
        return self.put(canonical({"files": members, "format": _FORMAT}).encode())

    def keep(self, data: bytes) -> str:
        """As `put`, on disk for good when it returns."""
        digest, path = self._written(data)
        self._flush({path})
        return digest

    def keep_files(self, files: Mapping[str, bytes]) -> Stored:
        """As `put_files`, on disk for good when it returns."""
        written = {name: self._written(data) for name, data in files.items()}
        members = {name: [digest, len(files[name])] for name, (digest, _) in written.items()}
        text = canonical({"files": members, "format": _FORMAT}).encode()
        manifest, path = self._written(text)
        self._flush({path, *(member for _, member in written.values())})
        return Stored(manifest, len(text) + sum(map(len, files.values())))

    def sync(self) -> None:
        """Returns when all that was put is on disk for good, by whichever thread."""
        with self._flushing:
            with self._guard:
                pending, self.pending = self.pending, set()
            try:
                self._flush(pending)
            except BaseException:
                with self._guard:
                    self.pending |= pending
                raise

    def get(self, digest: str) -> bytes:
        """Raises Missing, and Corrupt for bytes that are not those that were put."""
        path = self._path(digest)
        try:
            with open_plain(path) as file:
                size = os.fstat(file.fileno()).st_size
                if self._longest is not None and size > self._longest:
                    raise Corrupt(f"artifact {path} has {format_size(size)}, more than are read at once")
                data = file.read()
        except FileNotFoundError:
            raise Missing(f"artifact {digest} is not in {self._folder}; it was collected, or never kept") from None
        except OSError as error:
            raise _unreadable(path, error) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise Corrupt(f"artifact {path} is not what was stored; go back to a copy")
        return data

    def get_part(self, digest: str, start: int, size: int) -> tuple[bytes, int]:
        """Some bytes of what may be too long to be read whole, and how many there are. The digest is of all of them,
        so a part cannot be checked: it is for eyes, never to be judged by. Raises Missing and Corrupt.
        """
        path = self._path(digest)
        try:
            with open_plain(path) as file:
                file.seek(start)
                return file.read(size), os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            raise Missing(f"artifact {digest} is not in {self._folder}; it was collected, or never kept") from None
        except OSError as error:
            raise _unreadable(path, error) from error

    def get_files(self, digest: str) -> dict[str, bytes]:
        """What `put_files` took. Raises as `get` does."""
        members = _members(self.get(digest))
        if members is None:
            raise Corrupt(f"artifact {digest} is no list of files; name another")
        return {name: self.get(member) for name, member in members.items()}

    def gc(self, referenced: Collection[str], age: float, now: float) -> Collected:
        """Remove what nothing refers to and nobody put within the last `age` seconds. A manifest keeps its members."""
        kept = set(referenced)
        for digest in referenced:
            kept.update(self._members_of(digest))
        count = size = 0
        for path, found in self.files():
            if path.parent.name + path.name in kept or found.st_mtime > now - age:
                continue
            if self._removed(path, now - age):
                count, size = count + 1, size + found.st_size
        return Collected(count, size)

    def let_go(
        self, lists: Collection[str], kept_lists: Iterable[str], kept: Collection[str], until: float
    ) -> set[str]:
        """Remove lists and the files in them, but nothing that is kept, alone or in a kept list, nor what anybody put
        after `until`. Returns the lists of which something had to stay for that: ask for them again. Raises Corrupt
        before anything is removed where a kept list cannot be read: nobody can tell what has to stay.
        """
        members = {name: self._removable(name) for name in lists}
        going = set().union(*members.values(), lists) - set(kept)
        for name in kept_lists:
            if not going:
                break
            going -= {name, *self._kept_members(name)}
        young = {name for name in going - set(lists) if not self._is_gone(name, until)}
        left = {name for name, digests in members.items() if not young.isdisjoint(digests)}
        # The list itself goes last: with it, nobody would know what is still to be removed.
        return left | {name for name in (going & set(lists)) - left if not self._is_gone(name, until)}

    def those_there(self, digests: Collection[str]) -> set[str]:
        return {digest for digest in digests if self._path(digest).exists()}

    def size_of(self, digest: str) -> int:
        """Of a list of files, with the files; 0 for one that is not there."""
        try:
            data = self.get(digest)
        except LedgerError:
            return 0
        return len(data) + sum(_sizes(data))

    def usage(self) -> Usage:
        sizes = [found.st_size for _, found in self.files()]
        return Usage(len(sizes), sum(sizes))

    def _written(self, data: bytes) -> tuple[str, Path]:
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        with translating_os_errors(self._folder):
            if not (_is_there(path, data) and self._made_young(path)):
                path.parent.mkdir(mode=0o700, exist_ok=True)
                _write(path, data)
        return digest, path

    def _flush(self, paths: Collection[Path]) -> None:
        with translating_os_errors(self._folder):
            for path in paths:
                sync(path)
            folders = {path.parent for path in paths}
            for folder in folders:
                sync(folder)
            if not folders <= self._settled:
                sync(self._folder)
                self._settled |= folders

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise LedgerError(f"{digest[:80]!r} is no digest; it has 64 characters of 0-9 and a-f")
        return self._folder / digest[:2] / digest[2:]

    def _made_young(self, path: Path) -> bool:
        """So that gc leaves it alone until an event names it; False when gc was faster."""
        with self._guard:
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
            return True

    def _removed(self, path: Path, until: float) -> bool:
        """Looked at once more: another thread may have put it again."""
        with self._guard:
            try:
                if path.lstat().st_mtime > until:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
            return True

    def _is_gone(self, digest: str, until: float) -> bool:
        path = self._path(digest)
        with translating_os_errors(self._folder):
            return self._removed(path, until) or not path.exists()

    def _removable(self, digest: str) -> set[str]:
        try:
            return set(self._members_of(digest))
        except Corrupt:
            return set()  # what it names cannot be told; gc finds it

    def _kept_members(self, digest: str) -> Collection[str]:
        """Of what is known to be a list: one that is damaged in its first bytes is not taken for something else."""
        try:
            return (_members(self.get(digest)) or {}).values()
        except Missing:
            return ()

    def _members_of(self, digest: str) -> Collection[str]:
        path = self._path(digest)
        try:
            with path.open("rb") as file:
                if file.read(len(_MANIFEST)) != _MANIFEST:
                    return ()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _unreadable(path, error) from error
        return (_members(self.get(digest)) or {}).values()

    def files(self) -> Iterator[tuple[Path, os.stat_result]]:
        with translating_os_errors(self._folder):
            for shard in sorted(path for path in self._folder.iterdir() if path.is_dir()):
                for path in shard.iterdir():
                    try:
                        found = path.lstat()
                    except FileNotFoundError:
                        continue
                    if stat.S_ISREG(found.st_mode):
                        yield path, found


def _unreadable(path: Path, error: OSError) -> Corrupt:
    return Corrupt(f"artifact {path} cannot be read: {error.strerror}; go back to a copy")


def _write(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{secrets.token_hex(8)}")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)
        beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _is_there(path: Path, data: bytes) -> bool:
    """Compared byte by byte: a power cut before a sync can leave a file that is empty or cut short."""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except FileNotFoundError:
        return False


def _members(data: bytes) -> dict[str, str] | None:
    if not data.startswith(_MANIFEST):
        return None
    try:
        manifest = json.loads(data)
        if manifest.get("format") != _FORMAT:
            return None
        return {name: digest for name, (digest, _) in manifest["files"].items()}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _sizes(data: bytes) -> Iterator[int]:
    if _members(data) is not None:
        yield from (size for _, size in json.loads(data)["files"].values())
