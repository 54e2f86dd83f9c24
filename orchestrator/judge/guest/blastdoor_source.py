"""The text of a program, for an evaluator that looks at it. Standard library only, Python 3.9 up.

At the path that an evaluator has lies a stub, and that is what every loader finds. Who opens it to read, or asks
`inspect`, finds the candidate's own text, which is data here: it came with the judge's files, and nobody imports it.
What was compiled from it is never run. Who reads the path and finds the stub all the same is noticed: what such a check
says would be said of every program.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import linecache
import os
import sys
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from blastdoor_judge import BadOutput

__all__ = ["Reads", "note_load", "note_other_load", "placed", "read", "shown", "watched"]

# The orchestrator gives a byte more than this of a longer file.
MAX_BYTES = 1 << 20
_NO_WORDS = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
_DEF = ("async", "def", "name")
# Shorter texts are found in others by chance.
_LONG = 200

# The path of the stub, and the text that stands for its own; nothing while no evaluator runs.
_shown: list[tuple[str, str]] = []
_compiled: set[str] = set()
_watched: list[Reads] = []
_hooked: list[bool] = []
# Functions by which Python itself reads a file to load it, and modules that show a line of it, or copy it.
_LOADERS = ("get_code", "_get_code_from_file", "_read_directory")
_OF_LOADERS = ("runpy", "zipimport")
_NO_READERS = ("traceback", "warnings", "_py_warnings", "shutil")


def read(name: str) -> str:
    """Raises BadOutput for a file that is not there, or that nobody could have as a program."""
    path = Path(os.environ["BLASTDOOR_CANDIDATE"], name)
    if not path.is_file():
        raise BadOutput(f"there is no {name}")
    data = path.read_bytes()
    if len(data) > MAX_BYTES:
        raise BadOutput(f"{name} has more than {MAX_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadOutput(f"{name} is not UTF-8") from None


@contextlib.contextmanager
def shown(path: str, text: str) -> Iterator[None]:
    """Whoever reads this path meanwhile finds the text."""
    _hook()
    own = builtins.open
    _shown.append((path, text))
    builtins.open = io.open = tokenize._builtin_open = _opening(own)  # type: ignore[attr-defined]  # its own name of it
    linecache.cache[path] = (len(text), None, _lines(text), path)
    try:
        yield
    finally:
        builtins.open = io.open = tokenize._builtin_open = own  # type: ignore[attr-defined]  # as above
        linecache.cache.pop(path, None)
        _shown.clear()
        _compiled.clear()


class Reads:
    """Where the stub's text was read: places in the evaluator's files, and whether the candidate had been asked."""

    def __init__(self, path: str, evaluator: str, asked: Callable[[], bool]) -> None:
        self.path = os.path.realpath(path)
        self.folder = Path(evaluator).resolve().parent
        self.asked = asked
        self.found: list[tuple[str, bool]] = []
        # Whether a text, or a copy, was run as one more way to load the program: that is what it was read for.
        self.ran = False


@contextlib.contextmanager
def watched(path: str, evaluator: str, asked: Callable[[], bool]) -> Iterator[Reads]:
    """Note meanwhile who reads this path in another way than to load it."""
    _hook()
    reads = Reads(path, evaluator, asked)
    _watched.append(reads)
    try:
        yield reads
    finally:
        _watched.clear()


def note_load(stub: FrameType) -> None:
    """The stub runs, in this frame."""
    if _watched:
        outer = stub.f_back
        its_own = os.path.realpath(stub.f_code.co_filename) == _watched[-1].path
        if not (its_own and outer and _is_loading(_module_of(outer))):
            _watched[-1].ran = True


def note_other_load() -> None:
    """The stub, or a copy, ran in another process."""
    if _watched:
        _watched[-1].ran = True


def _note_read(path: Any, mode: Any) -> None:
    if not isinstance(path, (str, bytes, os.PathLike)) or set("wax") & set(mode or ""):
        return
    reads = _watched[-1]
    if os.path.realpath(os.fsdecode(path)) != reads.path:
        return
    place = ""
    frame: FrameType | None = sys._getframe(2)
    while frame:
        module, file = _module_of(frame), Path(frame.f_code.co_filename).resolve()
        if module in _NO_READERS or (frame.f_code.co_name in _LOADERS and _is_loading(module)):
            return
        if not place and file.parent == reads.folder and not file.name.startswith("blastdoor_"):
            place = f"{file.name}:{frame.f_lineno}"
        frame = frame.f_back
    reads.found.append((place or "the evaluator", reads.asked()))


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_loading(module: str) -> bool:
    return "importlib" in module or module in _OF_LOADERS


def placed(function: Callable[..., Any], name: str) -> None:
    """Give `inspect` the place of the candidate's function of this name, where its text has one."""
    path, text = _shown[-1] if _shown else ("", "")
    if line := _places(text).get(name):
        function.__code__ = function.__code__.replace(co_filename=path, co_firstlineno=line)


@lru_cache(maxsize=1)
def _places(text: str) -> dict[str, int]:
    """The lines of functions that are in nothing else, by name: the last of each, which is what loading it leaves. No
    words in a string are one.
    """
    found: dict[str, int] = {}
    words: list[str] = []
    at = (0, 0)
    with contextlib.suppress(SyntaxError, tokenize.TokenError):  # what follows, nobody could load
        for token in tokenize.generate_tokens(iter(_lines(text)).__next__):
            if token.type in _NO_WORDS:
                continue
            at = at if words else token.start
            words = [*words, token.string] if len(words) < len(_DEF) else words
            if token.type == tokenize.NEWLINE:
                words = words[words[0] == "async" :]
                if not at[1] and words[0] == "def":
                    found[words[1]] = at[0]
                words = []
    return found


def _lines(text: str) -> list[str]:
    """As Python counts them: no other mark than the ends of lines ends one."""
    return list(io.StringIO(text, newline=None))


def _opening(own: Callable[..., Any]) -> Callable[..., Any]:
    def opened(file: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        found = _text_of(os.fsdecode(file)) if isinstance(file, (str, bytes, os.PathLike)) else None
        if found is None or set(mode) - set("rbtU"):
            return own(file, mode, *arguments, **keywords)
        data = io.BytesIO(found.encode())
        if "b" in mode:
            return data
        given = {name: it for name, it in keywords.items() if name in ("errors", "newline")}
        return io.TextIOWrapper(data, "utf-8", **given)

    return opened


def _text_of(path: str) -> str | None:
    return next((text for known, text in _shown if os.path.realpath(path) == os.path.realpath(known)), None)


def _hook() -> None:
    """Once: a hook cannot be taken away."""
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked.append(True)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watched:
        _note_read(*arguments[:2])
    elif event in ("compile", "exec") and _shown:
        _refuse(event, arguments)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """A second lock: an evaluator that would run the text does not look alone, and was not told of as one that does."""
    if event == "compile":
        source, filename = arguments
        if isinstance(source, (bytes, bytearray)):
            source = bytes(source).decode("utf-8", "replace")
        if isinstance(source, str) and _is_theirs(source):
            _compiled.add(os.fsdecode(filename) if filename else "<string>")
    elif isinstance(arguments[0], CodeType) and arguments[0].co_filename in _compiled:
        raise RuntimeError("the program's text is there to be looked at, and is not run here")


def _is_theirs(source: str) -> bool:
    text = _shown[-1][1].strip()
    source = source.strip()
    return source == text or (len(text) >= _LONG and text in source) or (len(source) >= _LONG and source in text)
