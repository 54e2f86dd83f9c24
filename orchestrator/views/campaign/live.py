"""Lines of chambers at work, as the orchestrator appends them to files that come and go.

A file is held open: when it is removed, what was written to it last can still be read.
"""

import os
import stat
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from orchestrator.text import printable

_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 14
_SUFFIX = ".log"


class LiveLogs:
    """`poll` gives the new lines of every chamber, each with its trial's name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Tail] = {}

    def poll(self) -> list[tuple[str, str]]:
        present = self._present()
        lines: list[tuple[str, str]] = []
        for name in [name for name in self._open if present.get(name) != self._open[name].identity]:
            with self._open.pop(name) as gone:
                lines += [(name, line) for line in gone.rest()]
        for name in present:
            if name not in self._open and (tail := _open_tail(self._folder / f"{name}{_SUFFIX}")):
                self._open[name] = tail
            if name in self._open:
                lines += [(name, line) for line in self._open[name].lines()]
        return lines

    def skip(self, keep: int) -> list[tuple[str, str]]:
        """Read what is there, and give only the last lines of each chamber."""
        last: dict[str, deque[str]] = {}
        while batch := self.poll():
            for name, line in batch:
                last.setdefault(name, deque(maxlen=keep)).append(line)
        return [(name, line) for name, lines in last.items() for line in lines]

    def close(self) -> None:
        for tail in self._open.values():
            tail.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _present(self) -> dict[str, int]:
        """Trials by name, with what tells a new file of the same name from the old one."""
        try:
            with os.scandir(self._folder) as entries:
                found = {entry.name: entry.inode() for entry in entries if entry.name.endswith(_SUFFIX)}
        except OSError:
            return {}
        return {name.removesuffix(_SUFFIX): found[name] for name in sorted(found)}


class _Tail:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._part = b""
        self.identity = os.fstat(stream.fileno()).st_ino

    def lines(self) -> list[str]:
        """Whole ones, as far as they are written."""
        *whole, self._part = (self._part + self._stream.read(_CHUNK)).split(b"\n")
        if len(self._part) > _LONGEST_LINE:
            whole, self._part = [*whole, self._part], b""
        return [printable(line, keep="\t") for line in whole]

    def rest(self) -> list[str]:
        lines = self.lines()
        while more := self.lines():
            lines += more
        return [*lines, printable(self._part, keep="\t")] if self._part else lines

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open_tail(path: Path) -> _Tail | None:
    """None where it is gone already, or is no plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return _Tail(os.fdopen(descriptor, "rb"))
    os.close(descriptor)
    return None
