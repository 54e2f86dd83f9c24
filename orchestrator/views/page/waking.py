"""Told by the kernel that something was written in a folder: nobody has to look again and again.

Where the kernel cannot tell (no inotify, a network's file system, too many watches), its caller still looks now and
then.
"""

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

_MODIFY, _CLOSE_WRITE, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x8, 0x80, 0x100, 0x200
_MASK = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _CREATE | _DELETE
_OVERFLOW = 0x4000
# A holder's end, however it comes, is told by a close alone. Any other file was written before it is closed, and who
# reads a ledger closes its log as if it had written: that would wake a reader by its own reading, for ever.
_TOLD_BY_CLOSE = "lock"
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16
# A commit is several writes, and a campaign at work commits dozens of times a second: those are heard together. The
# first after a rest is heard at once.
_DEAF_S = 0.2

Tell = Callable[[str], None]


class Notices:
    """One for a server. `tell` is called in the event loop, with a file's name; with none where some were lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._told: dict[int, list[Tell]] = {}
        self._file = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file >= 0:
            self._hear()

    def _hear(self) -> None:
        if self._file >= 0:
            self._loop.add_reader(self._file, self._read)

    def watch(self, folder: Path, tell: Tell) -> Callable[[], None] | None:
        """What ends it; None where the kernel does not tell of this folder."""
        if self._file < 0:
            return None
        number: int = self._libc.inotify_add_watch(self._file, os.fsencode(folder), _MASK)
        if number < 0:
            return None
        self._told.setdefault(number, []).append(tell)

        def end() -> None:
            others = self._told.get(number, [])
            if tell in others:
                others.remove(tell)
            if not others and self._told.pop(number, None) is not None and self._file >= 0:
                self._libc.inotify_rm_watch(self._file, number)

        return end

    def close(self) -> None:
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1
        self._told.clear()

    def _read(self) -> None:
        self._loop.remove_reader(self._file)
        self._loop.call_later(_DEAF_S, self._hear)
        try:
            data = os.read(self._file, _BUFFER)
        except BlockingIOError:
            return
        heard: dict[tuple[int, str], None] = {}
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
            at += _EVENT.size + length
            if mask & _OVERFLOW:
                heard |= {(each, ""): None for each in self._told}
            elif mask != _CLOSE_WRITE or name == _TOLD_BY_CLOSE:
                heard[number, name] = None
        for number, text in heard:
            for tell in list(self._told.get(number, ())):
                tell(text)
