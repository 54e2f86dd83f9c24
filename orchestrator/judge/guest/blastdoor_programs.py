"""Runs programs for a judge that starts them, where the candidate is. Standard library only, Python 3.9 up.

    python3 -m blastdoor_programs sort.rs        # serves this program, and runs what the judge asks for

What it is asked is a command line with input and files, and what it answers is exit code, output and the files that
changed (blastdoor_carry is the other side). Files that can be started stay here: the judge gets only their names.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["MAX_BYTES", "MAX_FILES", "MAX_STREAM", "PROGRAM", "SLICE_S", "Runs", "regular_files", "without_numbers"]

# In a command line, the candidate's program; it has its own path where it is.
PROGRAM = "{program}"
MAX_BYTES = 32 << 20
MAX_FILES = 4000
MAX_STREAM = 4 << 20
# So long one question waits for the end of a run.
SLICE_S = 0.5
# A run that nobody has asked about for so long was given up by the one who started it.
_GIVEN_UP_S = 3.0
_EXECUTABLE = 0o111
_NOT_CARRIED = ("BLASTDOOR", "PYTHON")
_NUMBER = re.compile(r"[0-9]+(?:[.,:][0-9]+)*(?:e[+-]?[0-9]+)?")


def without_numbers(text: str) -> str:
    """As one run prints it and another: times, dates and counts differ, and so may the spaces before them."""
    return " ".join(_NUMBER.sub("#", text).split())


def regular_files(roots: Iterable[Path]) -> Iterator[Path]:
    """All beneath these folders, but for hidden folders; links are neither followed nor given."""
    for root in roots:
        for parent, folders, names in os.walk(root):
            folders[:] = sorted(it for it in folders if it[0] != ".")
            for name in sorted(names):
                path = Path(parent, name)
                if path.is_file() and not path.is_symlink():
                    yield path


class Runs:
    """What was started and not yet fetched. One that is given up is ended when the next one starts."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._text = program.read_bytes()
        self._runs: dict[int, _Run] = {}
        self._count = 0

    def program(self) -> bytes:
        """As it was before anything ran."""
        return self._text

    def start(self, request: Mapping[str, Any]) -> int:
        for number, run in list(self._runs.items()):
            if time.monotonic() - run.asked > _GIVEN_UP_S:
                run.kill()
                del self._runs[number]
        self._count += 1
        # Where others name it, in a script or a file of theirs, it is at the path that they know.
        there = Path(request["program"])
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(self._text)
        self._runs[self._count] = _Run(request, str(self._program))
        return self._count

    def wait(self, number: int, seconds: float) -> dict[str, Any] | None:
        """None where it still runs."""
        ended = self._runs[number].wait(min(seconds, SLICE_S))
        if ended is not None:
            del self._runs[number]
        return ended


class _Run:
    def __init__(self, request: Mapping[str, Any], program: str) -> None:
        self.asked = time.monotonic()
        self._roots, self._named = (list(map(Path, request[name])) for name in ("roots", "named"))
        for name, data in request["files"].items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            # What was built from it stays new: only what the judge's side has changed is written.
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)
        self._before = self._state()
        Path(request["cwd"]).mkdir(parents=True, exist_ok=True)
        self._streams = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115  they live as long as the run
        self._streams[0].write(request["stdin"])
        self._streams[0].seek(0)
        given = {name: it for name, it in request["env"].items() if not name.startswith(_NOT_CARRIED)}
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = b""
        argv = [word.replace(PROGRAM, program) for word in request["argv"]]
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=request["cwd"],
                env={**os.environ, **given, "PATH": os.environ.get("PATH", "/usr/bin:/bin")},
                stdin=self._streams[0],
                stdout=self._streams[1],
                stderr=self._streams[2],
                start_new_session=True,
            )
        except OSError as error:
            self._failed = f"{argv[0]}: {error.strerror}\n".encode()

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def wait(self, seconds: float) -> dict[str, Any] | None:
        if self._process is None:
            return {"code": 127, "stdout": b"", "stderr": self._failed, "files": {}}
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.asked = time.monotonic()
        for stream in self._streams:
            stream.seek(0)
        _, out, err = (stream.read(MAX_STREAM) for stream in self._streams)
        for stream in self._streams:
            stream.close()
        return {"code": code, "stdout": out, "stderr": err, "files": self._left()}

    def _state(self) -> dict[Path, tuple[int, int]]:
        paths = [*regular_files(self._roots), *(it for it in self._named if it.is_file())]
        return {path: (it.st_mtime_ns, it.st_size) for path in paths for it in [path.stat()]}

    def _left(self) -> dict[str, bytes | None]:
        """New and changed files; None for one that can be started, which stays here."""
        found: dict[str, bytes | None] = {}
        total = 0
        for path, state in sorted(self._state().items()):
            if self._before.get(path) == state:
                continue
            if path.stat().st_mode & _EXECUTABLE:
                found[str(path)] = None
            elif total + state[1] <= MAX_BYTES and len(found) < MAX_FILES:
                found[str(path)] = path.read_bytes()
                total += state[1]
        return found


def _main(arguments: list[str]) -> int:
    from blastdoor_candidate import serve

    if len(arguments) != 1:
        sys.stderr.write("usage: python3 -m blastdoor_programs FILE\n")
        return 2
    runs = Runs(Path(arguments[0]).resolve())
    serve(program=runs.program, start=runs.start, wait=runs.wait)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
