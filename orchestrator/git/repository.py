"""What is read and written of a repository, as bytes and nothing else.

A repository can make git run programs: hooks, filters, attributes, helpers named in a configuration. So no git process
is started, nothing is checked out and no index is used; blobs and trees are read and written as they are. The
configuration of the machine and of the user is switched off; a repository's own is looked at by libgit2 for its
format only.
"""

import errno
import functools
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

import pygit2
from pygit2.enums import ConfigLevel, RepositoryInitFlag, RepositoryOpenFlag

from orchestrator.change import File, Tree, shown
from orchestrator.domain.node import parse_node
from orchestrator.git import packs
from orchestrator.git.branches import pack_branches, write_branches
from orchestrator.sinks import commit_message
from sandbox.scratch import scratch

MAX_ENTRIES = 20_000  # files and folders
MAX_BYTES = 256 << 20
MAX_DEPTH = 100
_OWN_ENTRIES = 1_000_000
_OWN_BYTES = 1 << 34

_AUTHOR = "blastdoor <blastdoor@localhost>"
_MESSAGE_LINE = 1000
_NAME_BYTES = 250  # of a branch: with `.lock` behind it, it must still be a file's name
_FOLDER_BYTES = 16 << 20  # of a tree object
CACHE_BYTES = 64 << 20
_OPEN_PACKS = 128
_PACKS = "objects/pack"
TIDIED_AT = 32  # packs: libgit2 asks each of them for every object
LOOSE_BRANCHES = 1000  # files of their own, at most
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


@dataclass(frozen=True)
class Candidate:
    """A commit that is ready to be written. `new` are those of its objects that are not in the repository yet."""

    node: str
    commit: str
    tree: str
    parents: tuple[str, ...]
    time: int
    new: "_New"

    def is_same(self, other: "Candidate") -> bool:
        """But for the message, which another version may have written in another way."""
        return (self.tree, self.parents, self.time) == (other.tree, other.parents, other.time)


class Candidates:
    """A bare repository with one branch per node. One process writes, from any of its threads; any number may read.

    Candidates that are submitted while others are being written share one pack and its waits for the disk.
    """

    def __init__(self, folder: Path, *, make: bool = True) -> None:
        """Makes the repository where there is none, or raises GitError: who only reads leaves nothing behind."""
        self._folder = folder
        if not make and not folder.exists():
            raise GitError(f"{shown(str(folder))} is not there; bring it back beside the ledger")
        with _translating(folder):
            self._repository = _open_or_make(folder)
        self._stored: OrderedDict[tuple[int, bytes], bytes] = OrderedDict()
        self._stored_bytes = 0
        self._waiting: list[tuple[Candidate, Future[str]]] = []
        self._guard = threading.Lock()  # of the cache and of those who wait
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="candidates")
        self._untidied = TIDIED_AT  # packs since the last time; earlier processes may have left some, too

    def write(self, node: str, tree: Tree, parent: str | None, message: str, at: datetime) -> str:
        """A commit of this tree on the branch of this node, on disk for good when it returns.

        The same again gives the same commit, whatever words are with it; anything else under the name of a node that
        is there raises GitError.
        """
        return self.submit(self.prepare(node, tree, parent, message, at)).result()

    def prepare(self, node: str, tree: Tree, parent: str | None, message: str, at: datetime) -> Candidate:
        """What needs no disk of a write: it is hashed and compressed. Raises GitError for what git cannot hold."""
        _branch(node)
        with _translating(self._folder):
            parents = () if parent is None else (_checked_commit(parent),)
            for it in parents:
                _commit(self._repository, it)
            new: _New = {}
            top = self._add_folder(_nested(tree), 0, new).hex()
            when = int(at.timestamp())
            head = [f"tree {top}", *(f"parent {it}" for it in parents)]
            head += [f"{who} {_AUTHOR} {when} +0000" for who in ("author", "committer")]
            text = "\n".join([*head, "", commit_message(message, _MESSAGE_LINE)])
            commit = self._add(packs.COMMIT, text.encode(), new).hex()
            return Candidate(node, commit, top, parents, when, new)

    def submit(self, candidate: Candidate) -> Future[str]:
        """Its commit, once that is on disk for good, or what `write` raises. Nothing is waited for in here."""
        done: Future[str] = Future()
        with self._guard:
            self._waiting.append((candidate, done))
        self._writer.submit(self._write_waiting)
        return done

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
            repository = self._repository
            found = _commit(repository, commit)
            # Our own writing: its size was bounded when it was made.
            return _read(repository.odb, found.tree_id, "", _OWN_ENTRIES, _OWN_BYTES)

    def _add_folder(self, level: "_Level", depth: int, new: "_New") -> bytes:
        if depth > MAX_DEPTH:
            raise GitError(f"folders more than {MAX_DEPTH} deep; use fewer")
        entries = []
        for name, item in level.items():
            if isinstance(item, dict):
                entries.append((name + b"/", _FOLDER, name, self._add_folder(item, depth + 1, new)))
            else:
                mode = _EXECUTABLE if item.executable else _PLAIN
                entries.append((name, mode, name, self._add(packs.BLOB, item.data, new)))
        raw = b"".join(b"%s %s\0%s" % (mode, name, oid) for _, mode, name, oid in sorted(entries))
        return self._add(packs.TREE, raw, new)

    def _add(self, kind: int, data: bytes, new: "_New") -> bytes:
        """The object's id. What was stored lately is not even hashed again."""
        with self._guard:
            if known := self._stored.get((kind, data)):
                self._stored.move_to_end((kind, data))
                return known
        oid = packs.object_id(kind, data)
        if oid not in new:
            # Each store by itself: asked for all at once, libgit2 would look for new packs for each object that is new.
            repository = self._repository  # to hold it for as long
            if any(store.exists(pygit2.Oid(raw=oid)) for store in repository.odb.backends):
                self._remember(kind, data, oid)
            else:
                new[oid] = (kind, data, packs.packed(kind, data))
        return oid

    def _remember(self, kind: int, data: bytes, oid: bytes) -> None:
        with self._guard:
            if (kind, data) not in self._stored:
                self._stored_bytes += len(data)
            self._stored[kind, data] = oid
            while self._stored_bytes > CACHE_BYTES:
                (_, oldest), _ = self._stored.popitem(last=False)
                self._stored_bytes -= len(oldest)

    def _write_waiting(self) -> None:
        """In the one thread that writes."""
        with self._guard:
            taken, self._waiting = self._waiting, []
        # Who gave up before this began is left out.
        waiting = [(candidate, done) for candidate, done in taken if done.set_running_or_notify_cancel()]
        try:
            commits = self._write_all([candidate for candidate, _ in waiting])
        except BaseException as error:  # noqa: BLE001 - those who wait are told, whatever it was
            for _, done in waiting:
                done.set_exception(error)
            return
        for (candidate, done), commit in zip(waiting, commits, strict=True):
            if commit is None:
                why = f"node {candidate.node} has another candidate already; a node is written once"
                done.set_exception(GitError(why))
            else:
                done.set_result(commit)
        self._tidy()

    def _write_all(self, batch: Sequence[Candidate]) -> list[str | None]:
        """The commit of each, None where its node has another. A branch is made when all of its objects are on disk."""
        with _translating(self._folder):
            made: dict[str, Candidate] = {}
            commits: list[str | None] = []
            for candidate in batch:
                first = self._present(candidate.node) or made.setdefault(candidate.node, candidate)
                commits.append(first.commit if first.is_same(candidate) else None)
            if made:
                self._write_objects({oid: it for candidate in made.values() for oid, it in candidate.new.items()})
                self._write_branches({node: candidate.commit for node, candidate in made.items()})
            return commits

    def _present(self, node: str) -> Candidate | None:
        if (commit := self.commit_of(node)) is None:
            return None
        found = _commit(self._repository, commit)
        parents = tuple(map(str, found.parent_ids))
        return Candidate(node, commit, str(found.tree_id), parents, found.commit_time, {})

    def _write_objects(self, new: "_New") -> None:
        made = packs.write_packs(self._folder / _PACKS, {oid: entry for oid, (_, _, entry) in new.items()})
        self._untidied += len(made)
        for oid, (kind, data, _) in new.items():
            if kind != packs.COMMIT:  # which no two candidates share
                self._remember(kind, data, oid)

    def _write_branches(self, commits: Mapping[str, str]) -> None:
        write_branches(self._folder, commits)

    def _tidy(self) -> None:
        """So that there are few files for any number of candidates. Nobody waits for it, and nothing is lost when it
        fails: a disk that is full says so to the next who writes.
        """
        if self._untidied < TIDIED_AT:
            return
        self._untidied = 0
        with suppress(OSError):
            pack_branches(self._folder, LOOSE_BRANCHES)
        with suppress(OSError, pygit2.GitError):
            if packs.join_packs(self._folder / _PACKS):
                # libgit2 does not forget a pack that is gone, and asks each one that it knows for every object.
                self._repository = _open_bare(self._folder)


_Level = dict[bytes, "File | _Level"]
_New = dict[bytes, tuple[int, bytes, bytes]]  # an object's id → kind, content, and both as they are in a pack


@contextmanager
def _translating(place: Path) -> Iterator[None]:
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise NoSpace(f"no space left in {place}: free some and resume; nothing was lost") from error
        why = shown(" ".join(str(error).split()), 300)
        raise GitError(f"the repository {place} cannot be used: {why}") from error


@functools.cache
def _prepare() -> None:
    """For the whole process, once. The options are libgit2's own globals."""
    settings = pygit2.settings
    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        settings.search_path[level] = ""
    # The check protects from what a configuration can run; here it can run nothing.
    settings.owner_validation = False
    settings.set_extensions(["partialclone"])
    # It makes no more than empty repositories, but these are for good, too.
    settings.enable_fsync_gitdir(True)
    # It keeps every pack open that it has read from, also one that was joined with others and is gone.
    settings.mwindow_file_limit = _OPEN_PACKS


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
        with scratch("git", folder.parent) as beside:
            made = beside / "made"
            made.mkdir(mode=0o700)
            flags = RepositoryInitFlag.BARE | RepositoryInitFlag.NO_REINIT
            pygit2.init_repository(str(made), flags=flags, initial_head="1").free()
            try:
                made.rename(folder)
            except OSError:
                # Another process may have been faster.
                if not folder.exists():
                    raise
    _refuse_odd_files(folder)
    return _open_bare(folder)


def _open_bare(folder: Path) -> pygit2.Repository:
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
