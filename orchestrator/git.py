"""Candidates as commits, and workspaces read out of a repository, as bytes and nothing else.

A repository can make git run programs: hooks, filters, attributes, helpers named in a configuration. So no git process
is started, nothing is checked out and no index is used; blobs and trees are read and written as they are. The
configuration of the machine and of the user is switched off; a repository's own is looked at by libgit2 for its
format only.
"""

import errno
import functools
import os
import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath

import pygit2
from pygit2.enums import ConfigLevel, ObjectType, RepositoryInitFlag, RepositoryOpenFlag

from orchestrator.change import File, Tree, shown
from orchestrator.domain.node import parse_node
from orchestrator.sinks import commit_message

MAX_ENTRIES = 20_000  # files and folders
MAX_BYTES = 256 << 20
MAX_DEPTH = 100
_OWN_ENTRIES = 1_000_000
_OWN_BYTES = 1 << 34

_AUTHOR = ("blastdoor", "blastdoor@localhost")
_MESSAGE_LINE = 1000
_NAME_BYTES = 250  # of a branch: with `.lock` behind it, it must still be a file's name
_FOLDER_BYTES = 16 << 20  # of a tree object
_CACHE_BYTES = 64 << 20
_PROBE_BYTES = 1 << 16
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_COMMIT = re.compile(r"[0-9a-f]{40}")

_PLAIN, _EXECUTABLE, _FOLDER = b"100644", b"100755", b"40000"
_KIND, _REGULAR, _FOLDER_MODE, _LINK, _SUBMODULE = 0o170000, 0o100000, 0o040000, 0o120000, 0o160000


class GitError(Exception):
    """A repository cannot be used as it was asked; the message is one line for a person."""


class NoSpace(GitError):
    """The disk, or a quota, is full; the branch was not made."""


def read_tree(
    repository: Path,
    revision: str,
    folder: str = "",
    *,
    entries: int = MAX_ENTRIES,
    size: int = MAX_BYTES,
    leaves_out: Callable[[str], bool] = lambda _: False,
) -> tuple[str, Tree]:
    """The commit that a revision means now, and files under a folder of it, less what is left out. Raises GitError."""
    with _translating(repository):
        opened = _open(repository)
        commit = _commit(opened, revision)
        top = _descend(opened.odb, commit.tree_id, folder, revision)
        return str(commit.id), _read(opened.odb, top, folder, entries, size, leaves_out)


class Candidates:
    """A bare repository with one branch per node. One process writes, from any of its threads; any number may read."""

    def __init__(self, folder: Path, *, make: bool = True) -> None:
        """Makes the repository where there is none, or raises GitError: who only reads leaves nothing behind."""
        self._folder = folder
        if not make and not folder.exists():
            raise GitError(f"{shown(str(folder))} is not there; bring it back beside the ledger")
        with _translating(folder):
            self._repository = _open_or_make(folder)
            self._odb = self._repository.odb
        self._stored: OrderedDict[tuple[ObjectType, bytes], bytes] = OrderedDict()
        self._stored_bytes = 0
        self._guard = threading.Lock()  # of the cache and of the making of branches; who reads needs neither

    def write(self, node: str, tree: Tree, parent: str | None, message: str, at: datetime) -> str:
        """A commit of this tree on the branch of this node, on disk for good when it returns.

        The same again gives the same commit, whatever words are with it; anything else under the name of a node that
        is there raises GitError.
        """
        name = _branch(node)
        with _translating(self._folder, tree):
            author = pygit2.Signature(*_AUTHOR, int(at.timestamp()), 0)
            parents: list[pygit2.Oid | str] = [] if parent is None else [_checked_commit(parent)]
            top = pygit2.Oid(raw=self._write_folder(_nested(tree), 0))
            commit = self._repository.create_commit(
                None, author, author, commit_message(message, _MESSAGE_LINE), top, parents
            )
            with self._guard:
                present = self.commit_of(node)
                if present is None:
                    self._make_branch(name, commit)
                elif not self._is_same(present, commit):
                    raise GitError(f"node {node} has another candidate already; a node is written once")
            return present or str(commit)

    def _is_same(self, present: str, commit: pygit2.Oid) -> bool:
        """But for the message, which another version may have written in another way."""
        one, other = _commit(self._repository, present), _commit(self._repository, str(commit))
        return (one.tree_id, one.parent_ids, one.commit_time) == (other.tree_id, other.parent_ids, other.commit_time)

    def commit_of(self, node: str) -> str | None:
        """The commit of a node, None where it has none yet."""
        with _translating(self._folder):
            found = self._repository.references.get(_branch(node))
            return str(found.target) if found is not None else None

    def read(self, commit_or_node: str) -> Tree:
        with _translating(self._folder):
            commit = commit_or_node if _COMMIT.fullmatch(commit_or_node) else self.commit_of(commit_or_node)
            if commit is None:
                raise GitError(f"node {commit_or_node} has no candidate (blastdoor tree shows those that have)")
            found = _commit(self._repository, commit)
            # Our own writing: its size was bounded when it was made.
            return _read(self._odb, found.tree_id, "", _OWN_ENTRIES, _OWN_BYTES)

    def _make_branch(self, name: str, commit: pygit2.Oid) -> None:
        try:
            self._repository.references.create(name, commit)
        except (pygit2.GitError, OSError):
            # Who was killed just here left a lock behind. There is one writer, so nobody can be holding it.
            stale = self._folder / f"{name}.lock"
            if not stale.exists():
                raise
            stale.unlink()
            self._repository.references.create(name, commit)

    def _write_folder(self, level: "_Level", depth: int) -> bytes:
        if depth > MAX_DEPTH:
            raise GitError(f"folders more than {MAX_DEPTH} deep; use fewer")
        entries = []
        for name, item in level.items():
            if isinstance(item, dict):
                entries.append((name + b"/", _FOLDER, name, self._write_folder(item, depth + 1)))
            else:
                mode = _EXECUTABLE if item.executable else _PLAIN
                entries.append((name, mode, name, self._store(ObjectType.BLOB, item.data)))
        raw = b"".join(b"%s %s\0%s" % (mode, name, oid) for _, mode, name, oid in sorted(entries))
        return self._store(ObjectType.TREE, raw)

    def _store(self, kind: ObjectType, data: bytes) -> bytes:
        """The object's id. What was stored lately is neither hashed nor written again."""
        key = (kind, data)
        with self._guard:
            known = self._stored.get(key)
            if known is not None:
                self._stored.move_to_end(key)
                return known
        oid = self._odb.write(kind, data).raw
        with self._guard:
            if key not in self._stored:
                self._stored_bytes += len(data)
            self._stored[key] = oid
            while self._stored_bytes > _CACHE_BYTES:
                (_, oldest), _ = self._stored.popitem(last=False)
                self._stored_bytes -= len(oldest)
        return oid


_Level = dict[bytes, "File | _Level"]


@contextmanager
def _translating(place: Path, writing: Tree | None = None) -> Iterator[None]:
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        if writing is not None and _is_full(place, sum(len(file.data) for file in writing.values())):
            raise NoSpace(f"no space left in {place}: free some and resume; nothing was lost") from error
        why = shown(" ".join(str(error).split()), 300)
        raise GitError(f"the repository {place} cannot be used: {why}") from error


def _is_full(folder: Path, size: int) -> bool:
    """Tries to write as much: libgit2 forgets, or misnames, why a write of its own failed."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            for _ in range(0, size + _PROBE_BYTES, _PROBE_BYTES):
                file.write(bytes(_PROBE_BYTES))
    except OSError as error:
        return error.errno in _NO_SPACE
    return False


@functools.cache
def _prepare() -> None:
    """For the whole process, once. The options are libgit2's own globals."""
    settings = pygit2.settings
    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        settings.search_path[level] = ""
    # The check protects from what a configuration can run; here it can run nothing.
    settings.owner_validation = False
    settings.set_extensions(["partialclone"])
    # Every object, reference and folder entry is on disk before the next one names it.
    settings.enable_fsync_gitdir(True)


def _open(folder: Path) -> pygit2.Repository:
    _prepare()
    if not folder.is_dir():
        raise GitError(f"there is no folder {folder}; name an existing repository")
    return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH)


def _open_or_make(folder: Path) -> pygit2.Repository:
    """Made beside and moved into place: a process killed in between leaves no half of a repository."""
    _prepare()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            flags = RepositoryInitFlag.BARE | RepositoryInitFlag.NO_REINIT
            pygit2.init_repository(str(made), flags=flags, initial_head="1").free()
            made.rename(folder)
        except OSError:
            # Another process may have been faster.
            if not folder.exists():
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
    _refuse_odd_files(folder)
    return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE)


def _refuse_odd_files(folder: Path) -> None:
    """A folder of somebody else may hold a pipe under any name that libgit2 opens: it would wait for a writer for ever,
    and every thread of the process with it. A link may lead to one.
    """
    left = [folder]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise GitError(f"{shown(entry.path)} is neither a file nor a folder; move it away")


def _commit(repository: pygit2.Repository, revision: str) -> pygit2.Commit:
    if not revision.isprintable() or not revision:
        raise GitError(f"{shown(revision)!r} is no revision; name a branch, a tag or a commit")
    try:
        return repository.revparse_single(revision).peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError) as error:
        where = repository.path
        raise GitError(f"no commit {shown(revision)!r} in {where}; name a branch, a tag or a commit there") from error


def _checked_commit(text: str) -> str:
    if not _COMMIT.fullmatch(text):
        raise GitError(f"{shown(text)!r} is no commit; a parent is given by its whole id")
    return text


def _branch(node: str) -> str:
    try:
        name = parse_node(node)
    except ValueError as error:
        raise GitError(str(error)) from error
    if len(name) > _NAME_BYTES:
        raise GitError(f"node {name[:20]}… is too deep to be a branch; start a new run from it")
    return f"refs/heads/{name}"


def _nested(tree: Tree) -> _Level:
    top: _Level = {}
    for path, file in tree.items():
        *folders, name = [_checked_name(part, path) for part in _encoded(path).split(b"/")]
        level = top
        for folder in folders:
            below = level.setdefault(folder, {})
            if not isinstance(below, dict):
                raise GitError(f"{shown(path)}: a file and a folder of one name; rename one")
            level = below
        level[name] = file
    return top


def _encoded(path: str) -> bytes:
    try:
        return path.encode()
    except UnicodeEncodeError:
        raise GitError(f"{shown(path)}: a name that is not UTF-8; rename it") from None


def _checked_name(name: bytes, path: str) -> bytes:
    if name in (b"", b".", b"..") or b"\0" in name or name.lower() == b".git":
        raise GitError(f"{shown(path)}: git cannot hold a file of this name; rename it")
    return name


def _descend(odb: pygit2.Odb, top: pygit2.Oid, folder: str, revision: str) -> pygit2.Oid:
    for part in PurePosixPath(folder).parts:
        wanted = (_FOLDER_MODE, _encoded(part))
        found = [oid for mode, name, oid in _entries(odb, top) if (mode, name) == wanted]
        if not found:
            raise GitError(f"no folder {shown(folder)!r} at {shown(revision)!r}; name one that is there")
        top = found[0]
    return top


def _read(
    odb: pygit2.Odb,
    top: pygit2.Oid,
    folder: str,
    entries: int,
    size: int,
    leaves_out: Callable[[str], bool] = lambda _: False,
) -> Tree:
    """Iterative and capped by entries as well: a few small trees can stand for a billion folders."""
    files: dict[str, File] = {}
    left = [("", top, 0)]
    seen = 0
    while left:
        prefix, oid, depth = left.pop()
        if depth > MAX_DEPTH:
            raise GitError(f"folders more than {MAX_DEPTH} deep under {shown(prefix)}; use fewer")
        for mode, raw_name, entry in _entries(odb, oid):
            seen += 1
            if seen > entries:
                raise GitError(f"more than {entries} files and folders; name a smaller folder of the repository")
            path = prefix + _decoded(raw_name, prefix)
            if leaves_out(path):
                continue
            if mode == _FOLDER_MODE:
                left.append((f"{path}/", entry, depth + 1))
                continue
            _check_kind(mode, str(PurePosixPath(folder, path)))
            size -= odb.read_header(entry)[1]
            if size < 0:
                raise GitError(f"too many bytes, at {shown(path)}; name a smaller folder of the repository")
            files[path] = File(odb.read(entry)[1], executable=bool(mode & 0o111))
    return Tree(files)


def _entries(odb: pygit2.Odb, oid: pygit2.Oid) -> Iterator[tuple[int, bytes, pygit2.Oid]]:
    """The lines of a tree object: mode, name, id."""
    if odb.read_header(oid)[1] > _FOLDER_BYTES:
        raise GitError("a folder with too many entries; name a smaller folder of the repository")
    raw = odb.read(oid)[1]
    at = 0
    while at < len(raw):
        space = raw.index(b" ", at)
        end = raw.index(b"\0", space)
        yield int(raw[at:space], 8), raw[space + 1 : end], pygit2.Oid(raw=raw[end + 1 : end + 21])
        at = end + 21


def _decoded(name: bytes, prefix: str) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise GitError(f"{shown(prefix)}{shown(name)}: a name that is not UTF-8; rename it") from None
    if b"/" in name:
        raise GitError(f"{shown(prefix + text)}: a name with a slash in it; the repository is damaged")
    _checked_name(name, prefix + text)
    return text


def _check_kind(mode: int, path: str) -> None:
    kind = mode & _KIND
    if kind != _REGULAR:
        what = {_LINK: "a symbolic link", _SUBMODULE: "a submodule"}.get(kind, "no plain file")
        raise GitError(f"{shown(path)} is {what}; commit plain files in its place, or name a folder without it")
