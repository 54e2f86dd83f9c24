"""The processes that one private folder brought about, found and ended one by one.

They are known by the folder's name in their words or their environment, by working in it, or by a user made for them
alone. A process that gives itself a title may lose both its words and its environment, but not the place it works in.
"""

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    words: str


def own_processes(folder: Path, uid: int | None) -> list[Process]:
    """All that live, without this process and those that brought it about."""
    sign = os.fsencode(folder)

    def is_own(entry: Path, words: bytes) -> bool:
        if entry.stat().st_uid == uid or sign in words or sign in (entry / "environ").read_bytes():
            return True
        return sign in os.fsencode((entry / "cwd").readlink())

    return _processes(is_own)


def processes_saying(pattern: str) -> list[Process]:
    """Those on this machine whose command line has the pattern in it, in containers too."""
    return [process for process in _processes(lambda _, words: bool(words)) if re.search(pattern, process.words)]


def _processes(wanted: Callable[[Path, bytes], bool]) -> list[Process]:
    spared = _lineage()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if int(entry.name) not in spared and _lives(entry) and wanted(entry, words):
                found.append(Process(int(entry.name), words.replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def end_all(folder: Path, uid: int | None, seconds: float) -> list[Process]:
    """Asks, then kills, until none is left or the time is over. What is left is handed back."""
    until = time.monotonic() + seconds
    number = signal.SIGTERM
    while (left := own_processes(folder, uid)) and time.monotonic() < until:
        for process in left:
            end(process.pid, number, 0)
        time.sleep(0.5)
        number = signal.SIGKILL
    return left


def end(pid: int, number: signal.Signals, seconds: float) -> bool:
    """Whether it is gone after this long. The handle keeps a reused pid from being hit."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _lives(entry: Path) -> bool:
    """A zombie holds nothing but its number, until its parent asks."""
    return (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"


def _lineage() -> set[int]:
    pid, found = os.getpid(), set[int]()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            break
    return found
