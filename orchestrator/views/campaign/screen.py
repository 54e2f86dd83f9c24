"""The place where things are shown: how wide it is, whether it has colours, and which characters it can draw."""

import codecs
import io
import sys
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.text import Text

PIPED_WIDTH = 120
PIPED_HEIGHT = 30
_PLAIN_ERRORS = "blastdoor.plain"
_PLAIN = {"…": "...", "·": ".", "→": "->", "≥": ">=", "≤": "<="}


@dataclass(frozen=True)
class Screen:
    """Text of others is never read as markup, and what the encoding lacks is written as an escape."""

    console: Console
    width: int
    height: int
    unicode: bool

    def show(self, *things: RenderableType) -> None:
        """Renderables that fit the width by themselves."""
        for thing in things:
            self.console.print(thing)

    def line(self, text: Text | str) -> None:
        """One line, however long: the terminal folds it, and a pipe gets it whole."""
        self.console.print(text, soft_wrap=True)


def open_screen(*, stderr: bool = False) -> Screen:
    """Standard output as it is. A pipe has no width; there a chart gets a usual one, unless COLUMNS says more."""
    prepare_streams()
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    unicode = not console.options.ascii_only
    if console.is_terminal:
        return Screen(console, console.width, console.height, unicode)
    size = console.size
    default = (80, 25)
    width, height = size if tuple(size) != default else (PIPED_WIDTH, PIPED_HEIGHT)
    console.size = type(size)(width, height)
    return Screen(console, width, height, unicode)


def prepare_streams() -> None:
    """From here on no character can break a stream: what its encoding lacks is written in another way."""
    codecs.register_error(_PLAIN_ERRORS, _in_plain_characters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN_ERRORS)


def _in_plain_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    """What the encoding lacks: a plain stand-in for marks of ours, an escape for all else."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    shown = "".join(_PLAIN.get(one) or one.encode("ascii", "backslashreplace").decode("ascii") for one in lacking)
    return shown, error.end
