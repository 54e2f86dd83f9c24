"""The log of a chamber at work, in a file that other terminals follow.

Lines are written in a thread, all that came meanwhile at once: neither a flood of them nor a slow disk keeps the event
loop. What comes faster than it can be written is left out, and the file says so.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TextIO

from orchestrator.offload import offload_disk

# Characters that wait to be written; a trial's whole log may be larger than the memory that we give it.
MOST_WAITING = 1 << 20


class LiveLog:
    """It is there from its first line to its chamber's end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._waiting: list[str] = []
        self._room = MOST_WAITING
        self._left_out = 0
        self.writing: asyncio.Task[None] | None = None
        self._failure: OSError | None = None
        self._closed = False

    def line(self, text: str) -> None:
        if self._failure:
            raise self._failure
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # A file of its own: one of the same name that is closed late would remove it, if it were the same.
            self._path.unlink(missing_ok=True)
            self._file = self._path.open("x", encoding="utf-8")
        if len(text) >= self._room:
            self._left_out += 1
            return
        self._room -= len(text) + 1
        self._waiting.append(text)
        if self.writing is None:
            self.writing = asyncio.create_task(self._write(self._file))

    def close(self) -> None:
        """What still waits is written first, for those who hold the file open."""
        self._closed = True
        if self._file and self.writing is None:
            self._remove(self._file)

    async def _write(self, file: TextIO) -> None:
        try:
            while self._waiting:
                lines, self._waiting, self._room = self._waiting, [], MOST_WAITING
                if self._left_out:
                    lines.append(f"[{self._left_out} lines are left out here: they came too fast]")
                    self._left_out = 0
                await offload_disk(_append, file, lines)
        except OSError as error:
            self._failure = error
        finally:
            self.writing = None
            if self._closed:
                self._remove(file)

    def _remove(self, file: TextIO) -> None:
        with contextlib.suppress(FileNotFoundError):
            # The same node may have begun another one meanwhile.
            if os.path.samestat(self._path.stat(), os.fstat(file.fileno())):
                self._path.unlink()
        with contextlib.suppress(OSError):
            file.close()


def _append(file: TextIO, lines: list[str]) -> None:
    file.write("\n".join([*lines, ""]))
    file.flush()
