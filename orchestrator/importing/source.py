"""The folder that is imported: plain files within bounds, read and parsed, never run."""

import ast
import errno
import os
import stat
import unicodedata
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from orchestrator.apart import note
from orchestrator.change import shown
from orchestrator.python_source import parse_python
from orchestrator.task import TaskError

MAX_FILES = 5_000
MAX_ENTRIES = 100_000  # of all kinds, those that are left out too
MAX_FILE_BYTES = 32 << 20
MAX_TEXT_BYTES = 1 << 20
MAX_BYTES = 64 << 20  # of all files that are read
MAX_FOLDERS_DEEP = 64
_PART_BYTES = 255
_LEFT_OUT = frozenset(["__pycache__", "node_modules", "openevolve_output"])


@dataclass(frozen=True)
class Source:
    """`names` are the paths of its files. Hidden ones, those that are no UTF-8, and links are left out: a link could
    lead anywhere.
    """

    folder: Path
    names: tuple[str, ...]
    sizes: dict[str, int] = field(default_factory=dict, compare=False, repr=False)  # of files that were read

    @classmethod
    def of(cls, folder: Path) -> "Source":
        if not folder.is_dir():
            raise TaskError(f"{folder}: is no folder; name an existing one")
        found: list[str] = []
        entries = 0
        for parent, folders, names in os.walk(folder):
            entries += len(folders) + len(names)
            if entries > MAX_ENTRIES:
                raise TaskError(f"{folder}: has more than {MAX_ENTRIES:,} entries; name a smaller folder")
            # The walk goes as deep as its stack, which a tree can be made to exceed.
            if parent.count(os.sep) - str(folder).count(os.sep) > MAX_FOLDERS_DEEP:
                raise TaskError(f"{folder}: has more than {MAX_FOLDERS_DEEP} folders in folders; name a flatter one")
            folders[:] = sorted(name for name in folders if name[0] != "." and name not in _LEFT_OUT)
            for name in sorted(names):
                path = Path(parent, name)
                kept = name[0] != "." and not name.endswith(".pyc") and _is_text(str(path))
                if kept and path.is_file() and not path.is_symlink():
                    refuse_odd_name(folder, path.relative_to(folder).as_posix())
                    found.append(path.relative_to(folder).as_posix())
            if len(found) > MAX_FILES:
                raise TaskError(f"{folder}: has more than {MAX_FILES:,} files; name a smaller folder")
        return cls(folder, tuple(found))

    @cached_property
    def name_set(self) -> frozenset[str]:
        return frozenset(self.names)

    def at_top(self, pattern: str) -> list[str]:
        return [name for name in self.names if "/" not in name and fnmatchcase(name, pattern)]

    def read(self, name: str, cap: int = MAX_FILE_BYTES) -> bytes:
        note(name)
        try:
            # What was a plain file a moment ago may be a link by now.
            with os.fdopen(_opened(self.folder, name), "rb") as file:
                data = file.read(cap + 1)
        except OSError as error:
            raise TaskError(f"{self.folder / name}: cannot be read ({error.strerror})") from None
        if len(data) > cap:
            raise TaskError(f"{self.folder / name}: has more than {cap >> 20} MiB; leave it out of the folder")
        self.sizes[name] = len(data)
        if sum(self.sizes.values()) > MAX_BYTES:
            raise TaskError(f"{self.folder}: has more than {MAX_BYTES >> 20} MiB to read; leave large data out of it")
        return data

    def text(self, name: str) -> str:
        try:
            return self.read(name, MAX_TEXT_BYTES).decode("utf-8")
        except UnicodeDecodeError:
            raise TaskError(f"{self.folder / name}: is not UTF-8; save it as UTF-8") from None

    def python(self, name: str) -> ast.Module:
        tree = parse_python(self.text(name))
        if tree is None:
            path = self.folder / name
            raise TaskError(f"{path}: has a syntax error; python3 -m py_compile {path} shows where")
        return tree

    def module_files(self, module: str) -> list[str]:
        """The files of a module or package of this name that lies beside the evaluator; none where it is not here."""
        return self._by_top.get(f"{module}.py") or self._by_top.get(f"{module}/", [])

    @cached_property
    def _by_top(self) -> dict[str, list[str]]:
        """The names by their first part: a file's own, or its folder's with the slash."""
        found: dict[str, list[str]] = {}
        for name in self.names:
            top, slash, _ = name.partition("/")
            found.setdefault(top + slash, []).append(name)
        return found


def _opened(folder: Path, name: str) -> int:
    """A descriptor of a file beneath the folder, which no link on the way led to."""
    *parents, last = name.split("/")
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for parent in parents:
            inner = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = inner
        # Not blocking: it may be a pipe by now, too.
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "is no plain file")
    return found


def refuse_odd_name(folder: Path, name: str) -> None:
    """Names stand in lines of the task and of what is told, and must not begin lines of their own there. None leads out
    of its folder, or makes a repository there, whose settings start programs when git is called in it.
    """
    if any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in name):
        raise TaskError(f"{folder}: the name {shown(name, 200)} has a character that nobody sees; rename the file")
    parts = name.split("/")
    wrong = {"", ".", ".."}.intersection(parts) or any(len(it.encode()) > _PART_BYTES for it in parts)
    if wrong or len(parts) > 2 * MAX_FOLDERS_DEEP or ".git" in map(str.casefold, parts):
        raise TaskError(
            f"{folder}: a file would be named {shown(name, 200)}, which no task may have; name it otherwise"
        )


def _is_text(path: str) -> bool:
    return path.encode("utf-8", "replace") == path.encode("utf-8", "surrogateescape")
