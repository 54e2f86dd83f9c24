"""What a machine writes, taken through a pipe and counted: however much it sends, it is cut off at the cap.

SkyPilot's connections write a command's output to a file, whatever its size. A named pipe in its place is read by us.
Copying files back is not done at all: a hostile sender chooses what its receiver writes, and where. What travels is
base64, because a connection may put a terminal in between, which changes the ends of lines (Slurm's does).
"""

import base64
import contextlib
import os
import re
import secrets
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

from sandbox.errors import Unavailable
from sandbox.scratch import scratch

_NOISE = 65_536  # what login shells say before our own first word
_PIECE = 65_536
_CODE_BYTES = 5
BROKEN = 255  # as ssh says it
_PAUSE_S = 0.05


def bounded_output(command: str, cap: int, run: Callable[[str, Path], int]) -> tuple[int, bytes]:
    """The exit code, and at most `cap` bytes of stdout. `run` runs a line of bash there and writes to the path.

    Bytes that are not as we asked for them are the end of what is taken. The exit code travels behind them: Slurm's own
    client complains on the terminal of codes that are not 0. Without it, it is that of a connection that broke.
    """
    word = f"<{secrets.token_hex(16)}>"
    with scratch("pipe") as folder:
        pipe = folder / "output"
        os.mkfifo(pipe, 0o600)
        reader = _Reader(pipe, word.encode(), -(-cap // 3) * 4 + _CODE_BYTES)
        try:
            encoded = f"( {command} ) | base64 -w 0; printf ':%s.' \"${{PIPESTATUS[0]}}\""
            code = run(f"printf %s {shlex.quote(word)}; {encoded}", pipe)
        finally:
            reader.finish()
    if not reader.greeted:
        raise Unavailable(f"the machine cannot be reached (exit code {code})")
    data, told = _decoded(reader.output)
    return (BROKEN if told is None else told), data[:cap]


def _decoded(raw: bytes) -> tuple[bytes, int | None]:
    found = re.match(rb"([A-Za-z0-9+/]*={0,2})(?::([0-9]{1,3})\.)?", raw)
    if not found:
        return b"", None
    text, code = found[1], found[2]
    return base64.b64decode(text[: len(text) // 4 * 4]), int(code) if code else None


class _Reader:
    """Reads in a thread of its own, until `finish`, what follows our first word."""

    def __init__(self, pipe: Path, word: bytes, cap: int) -> None:
        self._word = word
        self._cap = cap
        self._taken = bytearray()
        self.greeted = False
        # Without waiting for somebody who writes: a connection that fails at once would never come.
        self._descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def output(self) -> bytes:
        return bytes(self._taken[: self._cap])

    def finish(self) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        try:
            while not self._full():
                over = self._over.is_set()
                piece = b""
                with contextlib.suppress(BlockingIOError):
                    piece = os.read(self._descriptor, _PIECE)
                if piece:
                    self._taken += piece
                    self._greet()
                elif over:
                    return
                else:
                    self._over.wait(_PAUSE_S)
        finally:
            # Who writes on gets a broken pipe, and ends.
            os.close(self._descriptor)

    def _greet(self) -> None:
        if not self.greeted and (at := self._taken.find(self._word)) >= 0:
            del self._taken[: at + len(self._word)]
            self.greeted = True

    def _full(self) -> bool:
        return len(self._taken) > (self._cap if self.greeted else _NOISE)
