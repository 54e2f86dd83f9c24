"""A terminal that shows one picture and then is as it was: the other screen, a hidden cursor, no mouse, no keys.

Only a handful of plain sequences that every terminal since the VT100 takes, and every line is written again, so that
what a resize or a stray key left is gone with the next picture.
"""

import io
import os
import sys
from collections import deque
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_LEAST = (20, 4)


def can_be_drawn_on(console: Console, *others: TextIO) -> bool:
    """A terminal that knows its sequences, and so are the others: who pipes one of them away wants lines."""
    dumb = console.is_dumb_terminal or not os.environ.get("TERM")
    return console.is_terminal and not dumb and all(stream.isatty() for stream in others)


class Terminal:
    """`size` may change at any time. After `leave` nothing more is drawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # The stream itself: while the picture stands, what is written to stderr goes elsewhere.
        self._stream = console.file
        self._last = ""
        self._size = (0, 0)
        self._open = False

    @property
    def unicode(self) -> bool:
        return not self._console.options.ascii_only

    @property
    def size(self) -> tuple[int, int]:
        """Columns without the last one, where a terminal may wrap; and lines."""
        try:
            columns, lines = os.get_terminal_size(self._stream.fileno())
        except (OSError, io.UnsupportedOperation):
            columns, lines = self._console.size
        return max(_LEAST[0], columns or 80) - 1, max(_LEAST[1], lines or 24)

    def enter(self) -> None:
        self._open = True
        self._write(_ENTER)

    def leave(self) -> None:
        """As often as one likes."""
        if self._open:
            self._open = False
            self._write(_LEAVE)

    def draw(self, lines: Sequence[Text]) -> None:
        """Nothing is written where nothing changed: a slow line carries what is new only."""
        size = self.size
        rows = [f"\x1b[{row};1H{self._styled(line)}\x1b[K" for row, line in enumerate(lines[: size[1]], 1)]
        below = f"\x1b[{len(rows) + 1};1H\x1b[J" if len(rows) < size[1] else ""
        picture = "".join([*rows, below, "\x1b[H"])
        if self._open and (picture != self._last or size != self._size):
            self._write(("\x1b[2J" if size != self._size else "") + picture)
            self._last, self._size = picture, size

    def _styled(self, line: Text) -> str:
        with self._console.capture() as capture:
            self._console.print(line, end="", soft_wrap=True)
        return capture.get()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The line was cut, so nobody is there to be told; the campaign goes on.
            self._open = False


class Aside(io.TextIOBase):
    """What is written to stderr while a picture stands: its last line is shown there, all of it comes afterwards."""

    def __init__(self, most: int = 200) -> None:
        self._lines: deque[str] = deque(maxlen=most)
        self._part = ""

    @property
    def last(self) -> str:
        return self._lines[-1] if self._lines else ""

    def write(self, text: str) -> int:
        *whole, self._part = (self._part + text).split("\n")
        self._lines.extend(line for line in whole if line.strip())
        return len(text)

    def pour(self, stream: TextIO | None = None) -> None:
        for line in [*self._lines, *([self._part] if self._part else [])]:
            print(line, file=stream or sys.stderr)
        self._lines.clear()
        self._part = ""
