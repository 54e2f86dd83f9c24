"""The place where things are shown: how wide it is, whether it has colours, and which characters it can draw."""

import codecs
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.views.render.layout import Line, plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

PIPED_WIDTH = 120
PIPED_HEIGHT = 30
_PLAIN_ERRORS = "blastdoor.plain"
_PLAIN = {"…": "...", "·": ".", "→": "->", "≥": ">=", "≤": "<="}
# By these rich takes a pipe for a terminal.
_COLOURS = ("FORCE_COLOR", "TTY_COMPATIBLE")


@dataclass(frozen=True)
class Screen:
    """Text of others is never read as markup, and what the encoding lacks is written as an escape. Lines for a pipe are
    written without rich, which takes longer to load than they take to make.
    """

    width: int
    height: int
    unicode: bool
    stderr: bool = False
    piped: bool = False

    @cached_property
    def console(self) -> "Console":
        from rich.console import Console

        console = Console(stderr=self.stderr, markup=False, highlight=False, emoji=False)
        if self.piped:
            console.size = type(console.size)(self.width, self.height)
        return console

    def show(self, *things: "RenderableType") -> None:
        """Renderables that fit the width by themselves."""
        for thing in things:
            self.console.print(thing)

    def line(self, text: "Text | str") -> None:
        """One line, however long: the terminal folds it, and a pipe gets it whole."""
        self.console.print(text, soft_wrap=True)

    def lines(self, lines: Iterable[Line]) -> None:
        if self.piped:
            # Not by click, which writes UTF-8 to a stream that is said to be ASCII.
            stream = sys.stderr if self.stderr else sys.stdout
            stream.write("".join(f"{plain(line)}\n" for line in lines))
            stream.flush()
            return
        from rich.text import Text

        for line in lines:
            self.line(Text.assemble(*line))


def open_screen(*, stderr: bool = False) -> Screen:
    """Standard output as it is. A pipe has no width; there a chart gets a usual one, unless COLUMNS says more."""
    prepare_streams()
    stream = sys.stderr if stderr else sys.stdout
    unicode = (stream.encoding or "utf-8").lower().startswith("utf")
    if stream.isatty() or any(map(os.environ.get, _COLOURS)):
        console = Screen(0, 0, unicode, stderr).console
        return Screen(console.width, console.height, unicode, stderr)
    sizes = (os.environ.get("COLUMNS", ""), PIPED_WIDTH), (os.environ.get("LINES", ""), PIPED_HEIGHT)
    width, height = (int(given) if given.isdigit() and int(given) else usual for given, usual in sizes)
    return Screen(width, height, unicode, stderr, piped=True)


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
