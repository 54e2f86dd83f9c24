"""Looks on while the baseline runs once more: which lines are reached, and where the time goes. Standard library only,
Python 3.9 up.

It comes into the chamber as `sitecustomize`, so that every Python there begins with it. Lines are traced until a
function has shown nothing new for long; what was not seen of it then is unknown, not unreached. Time is sampled from a
thread. Of very many files, those are told where the time went, and of a file for which there is no room its hottest
lines; that something is missing is told as well. What it finds is a file of BLASTDOOR_PROFILE for each process, or the
answer to a frame of a judge that calls.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["fitting", "profile"]

_ROOT = os.environ.get("BLASTDOOR_PROFILE_ROOT", "/work/src")
_FOLDER = os.environ.get("BLASTDOOR_PROFILE", "")
_OWN = ".blastdoor"
# Line events of one function without a new line, after which it is traced no more.
_IDLE = 20_000
_SAMPLE_S = 0.002
_WRITE_S = 1.0
_DEEPEST = 200
_CODES = 20_000
_LINES = 20_000
_FILES = 64
# More than a reader takes is not read at all.
_BYTES = 1 << 20


class _Seen:
    """Of one function, or the body of a module. `path` is empty outside of the workspace. `cut`: it was not traced to
    the end. It is found by its identity: equal code of two files is the same by value.
    """

    __slots__ = ("code", "cut", "idle", "lines", "path")

    def __init__(self, code: CodeType, path: str) -> None:
        self.code = code
        self.path = path
        self.lines: set[int] = set()
        self.idle = 0
        self.cut = False


class _Profile:
    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._full = False
        self._heat: dict[tuple[str, int], float] = {}
        self._total = 0.0
        self._sampled = 0
        self._pid = os.getpid()

    def begin(self) -> None:
        threading.settrace(self.called)
        sys.settrace(self.called)
        sys.setswitchinterval(0.001)
        threading.Thread(target=self._sample, name="blastdoor-profile", daemon=True).start()

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        seen = self._seen.get(id(code))
        if seen is None:
            if len(self._seen) >= _CODES:
                self._full = True
                return None
            seen = self._seen[id(code)] = _Seen(code, _inside(code.co_filename))
        if not seen.path or seen.cut:
            return None
        seen.lines.add(frame.f_lineno)
        return self._line if event == "call" else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        seen = self._seen.get(id(frame.f_code))
        if seen is None or event != "line":
            return self._line
        if frame.f_lineno in seen.lines:
            seen.idle += 1
            if seen.idle > _IDLE:
                seen.cut = True
                frame.f_trace_lines = False
        else:
            seen.lines.add(frame.f_lineno)
            seen.idle = 0
        return self._line

    def _sample(self) -> None:
        mine, last, written = threading.get_ident(), time.monotonic(), time.monotonic()
        while os.getpid() == self._pid:
            time.sleep(_SAMPLE_S)
            now = time.monotonic()
            for ident, frame in sys._current_frames().items():
                if ident != mine:
                    self._count(frame, now - last)
            last = now
            if _FOLDER and now - written > _WRITE_S:
                self.write()
                written = now

    def _count(self, frame: FrameType | None, passed: float) -> None:
        """Once for each function on the stack, at the place where its innermost call is."""
        met: set[int] = set()
        if frame is not None and frame.f_code in _TRACING:
            return  # this time is ours, not the program's
        for _ in range(_DEEPEST):
            if frame is None:
                break
            code = frame.f_code
            seen = self._seen.get(id(code))
            if seen is not None and seen.path and id(code) not in met:
                met.add(id(code))
                place = (seen.path, frame.f_lineno or _line_before(code, frame.f_lasti))
                self._heat[place] = self._heat.get(place, 0.0) + passed
            frame = frame.f_back
        if met:
            self._total += passed
            self._sampled += 1

    def told(self) -> bytes:
        codes = [seen for seen in list(self._seen.values()) if seen.path]
        paths = self._hottest({seen.path: 0.0 for seen in codes})
        files: dict[str, dict[str, Any]] = {
            path: {"reached": set(), "unknown": set(), "never": set(), "heat": []} for path in paths[:_FILES]
        }
        for seen in codes:
            if seen.path not in files:
                continue
            of_file = files[seen.path]
            of_file["reached"] |= seen.lines
            if seen.cut:
                of_file["unknown"] |= _own_lines(seen.code) - seen.lines
            of_file["never"] |= _all_lines(seen.code)
        for (path, line), seconds in list(self._heat.items()):
            if path in files:
                files[path]["heat"].append([line, round(1000 * seconds)])
                files[path]["reached"].add(line)
        full = self._full
        for of_file in files.values():
            if full:  # a function that was not traced may have run
                of_file["unknown"] |= of_file["never"]
            of_file["never"] -= of_file["reached"] | of_file["unknown"]
            of_file["heat"] = sorted(of_file["heat"], key=lambda it: -it[1])[:_LINES]
            for name in ("reached", "unknown", "never"):
                of_file[name] = _ranges(of_file[name])
        found = {"profile": 1, "samples": self._sampled, "ms": round(1000 * self._total)}
        texts = fitting(files, _BYTES - len(json.dumps(found)) - 100)
        cut = full or len(paths) > _FILES or texts != {path: json.dumps(it) for path, it in files.items()}
        whole = ", ".join(f"{json.dumps(path)}: {text}" for path, text in texts.items())
        return f'{json.dumps({**found, "cut": cut})[:-1]}, "files": {{{whole}}}}}'.encode()

    def _hottest(self, times: dict[str, float]) -> list[str]:
        """First those where the time went, then in the order in which they were loaded."""
        for (path, _), seconds in list(self._heat.items()):
            times[path] = times.get(path, 0.0) + seconds
        return sorted(times, key=lambda path: -times[path])

    def write(self) -> None:
        """Beside, and then in its place: a process may be killed at any moment."""
        try:
            folder = Path(_FOLDER)
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f".{os.getpid()}"
            beside.write_bytes(self.told())
            beside.replace(folder / f"{os.getpid()}.json")
        except (OSError, RuntimeError):  # a full disk, or a dictionary that grew meanwhile: the next one may pass
            return

    def forked(self) -> None:
        """A child knows what its parent knew; what it adds is its own."""
        self._pid = os.getpid()
        threading.Thread(target=self._sample, name="blastdoor-profile", daemon=True).start()


def _inside(path: str) -> str:
    """A file of the workspace, by its place in it; empty for all others."""
    if path.startswith("<"):
        return ""
    path = os.path.normpath(Path(_START, path))
    if not path.startswith(_ROOT + os.sep):
        return ""
    name = os.path.relpath(path, _ROOT)
    return "" if name.split(os.sep, 1)[0] == _OWN else name


def _line_before(code: CodeType, at: int) -> int:
    """Where an instruction has no line of its own, that of the last one before it that has."""
    lines = [line for start, _, line in code.co_lines() if line and start <= at] if hasattr(code, "co_lines") else []
    return lines[-1] if lines else code.co_firstlineno


def _own_lines(code: CodeType) -> set[int]:
    """Those on which something happens. The first is the signature, where no line of the function runs."""
    lines = {line for _, _, line in code.co_lines() if line} if hasattr(code, "co_lines") else set()
    return lines - {code.co_firstlineno} if code.co_name != "<module>" else lines


def _all_lines(code: CodeType) -> set[int]:
    """With those of all functions inside, called or not."""
    lines: set[int] = set()
    waiting = [code]
    while waiting and len(lines) < _LINES:
        one = waiting.pop()
        lines |= _own_lines(one)
        waiting += [it for it in one.co_consts if isinstance(it, CodeType)]
    return lines


def fitting(files: dict[str, dict[str, Any]], room: int) -> dict[str, str]:
    """As many as have room, the hottest first. Of one that has none, so many of its hottest lines, half and half again,
    as have room: nothing else is known of it then. One without such a line is left out.
    """
    texts: dict[str, str] = {}
    for path, of_file in files.items():
        text, room = json.dumps(of_file), room - len(json.dumps(path)) - 4
        ends = [end for name in ("reached", "unknown", "never") for _, end in of_file[name]]
        hot = of_file["heat"]
        while len(text) > room and hot:
            told = {
                "reached": _ranges({line for line, _ in hot}),
                "unknown": [[1, max(ends)]],
                "never": [],
                "heat": hot,
            }
            text, hot = json.dumps(told), hot[: len(hot) // 2]
        if len(text) <= room:
            texts[path], room = text, room - len(text)
    return texts


def _ranges(lines: set[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for line in sorted(it for it in lines if it > 0)[:_LINES]:
        if found and found[-1][1] == line - 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return found


def profile() -> bytes:
    """What was seen until now."""
    return _profile.told()


_START = Path.cwd()
_TRACING = (_Profile.called.__code__, _Profile._line.__code__)
_profile = _Profile()


def _begin() -> None:
    leave = os._exit

    def write_and_leave(status: int) -> None:
        if _FOLDER:
            _profile.write()
        leave(status)

    os._exit = write_and_leave  # type: ignore[assignment]  # a worker of multiprocessing ends in no other way
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_profile.forked)
    if _FOLDER:
        atexit.register(_profile.write)
    _profile.begin()


if "BLASTDOOR_PROFILE_ROOT" in os.environ:
    _begin()
