"""Parts of a file that a change may touch: lines between two marks, or a function or class of a Python file.

An entry of `editable` names one of them behind the path: `solve.py:EVOLVE-BLOCK` for every stretch between a line with
EVOLVE-BLOCK-START and the next one with EVOLVE-BLOCK-END, `solve.py::Solver.solve` for a definition with its
decorators. A colon is in no path, so neither can be mistaken for a file.

Both versions of a file are cut at its regions in the same way, and what lies outside must be the same bytes in the same
order. A version that cannot be cut, since a mark came, went or moved, since a name is there twice or no longer, is
refused: nothing is guessed.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from orchestrator.python_source import parse_python
from orchestrator.text import shown

_MARK = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_DEFINITION = re.compile(r"[^\W\d]\w{0,99}(?:\.[^\W\d]\w{0,99}){0,7}")
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_UTF_8 = (b"utf-8", b"utf8", b"utf_8", b"utf-8-sig")
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PYTHON = (".py", ".pyw")


class BadRegion(ValueError):
    """The file cannot be cut at its regions. One line, without the path."""


@dataclass(frozen=True)
class Region:
    """`name` is what two marks have in common, or, of a `definition`, the dotted name of a function or class."""

    name: str
    definition: bool = False

    @property
    def told(self) -> str:
        """As a model or an agent is told of it."""
        if self.definition:
            return f"the definition of {self.name}, whose name stays"
        return f"the lines between the marks {self.name}-START and {self.name}-END, which stay as they are"

    def __str__(self) -> str:
        return f"::{self.name}" if self.definition else f":{self.name}"


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `end` of a file are a region: whole lines."""

    start: int
    end: int

    def touches(self, start: int, end: int) -> bool:
        return start < self.end and end > self.start


def split_entry(entry: str) -> tuple[str, Region | None]:
    """The path or glob of an entry of `editable`, and its region if it names one. Raises ValueError."""
    path, colon, name = entry.partition(":")
    if not colon:
        return entry, None
    region = Region(name.removeprefix(":"), definition=name.startswith(":"))
    if "*" in path or "?" in path:
        raise ValueError(f"{shown(entry)}: a region is in one file; write its exact path before the colon")
    if not (_DEFINITION if region.definition else _MARK).fullmatch(region.name):
        usage = "path:NAME for marks NAME-START and NAME-END, or path::function"
        raise ValueError(f"{shown(entry)}: this is not a region; write {usage}")
    if region.definition and not path.endswith(_PYTHON):
        raise ValueError(f"{shown(entry)}: functions are found in Python files only; use marks, path:NAME")
    return path, region


@lru_cache(maxsize=32)
def spans(path: str, data: bytes, regions: tuple[Region, ...]) -> tuple[Span, ...]:
    """Where the regions of a file are, in order. Raises BadRegion."""
    text = _text(data)
    module = parse_python(text) if path.endswith(_PYTHON) else None
    lines = data.split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    starts[-1] = len(data)
    found: list[Span] = []
    for region in regions:
        rows = _defined(region.name, module, lines) if region.definition else _marked(region.name, lines, module)
        found += [Span(starts[first], starts[end]) for first, end in rows]
    found.sort(key=lambda it: (it.start, it.end))
    if any(one.end > two.start for one, two in pairwise(found)):
        raise BadRegion(f"the regions {', '.join(map(str, regions))} overlap")
    return tuple(found)


def outside(path: str, data: bytes, regions: tuple[Region, ...]) -> list[bytes]:
    """What is before, between and behind the regions. Raises BadRegion."""
    pieces, at = [], 0
    for span in spans(path, data, regions):
        pieces.append(data[at : span.start])
        at = span.end
    return [*pieces, data[at:]]


def difference_outside(path: str, old: bytes, new: bytes, regions: tuple[Region, ...]) -> str:
    """Why the new file is not the old one with other regions; empty where it is."""
    try:
        before = outside(path, old, regions)
    except BadRegion as error:
        return f"it had no such region before: {error}"
    if path.endswith(_PYTHON) and parse_python(_text(old)) and not _is_python(new):
        return "it can no longer be read as Python, so its regions are not known"
    try:
        after = outside(path, new, regions)
    except BadRegion as error:
        return str(error)
    if before == after:
        return ""
    if len(before) != len(after):
        return f"it has {len(after) - 1} regions instead of {len(before) - 1}"
    at = next(at for at, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])
    end = spans(path, new, regions)[at - 1].end if at else 0
    line = new.count(b"\n", 0, end) + _first_other_line(before[at], after[at]) + 1
    return f"line {line} of the new file is outside its regions and differs"


def _is_python(data: bytes) -> bool:
    try:
        return parse_python(_text(data)) is not None
    except BadRegion:
        return True  # what is wrong with it is said where it is cut


def _first_other_line(old: bytes, new: bytes) -> int:
    mine, its = old.split(b"\n"), new.split(b"\n")
    shorter = min(len(mine), len(its))
    return next((at for at in range(shorter) if mine[at] != its[at]), shorter)


def _text(data: bytes) -> str:
    """Every reader must see the same lines: a lone carriage return ends one for some, and so can other encodings."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadRegion("it is not UTF-8; save it as UTF-8") from None
    if "\0" in text:
        raise BadRegion("it has a NUL in it; a region needs text")
    if data.count(b"\r") != data.count(b"\r\n"):
        raise BadRegion("it has a carriage return within a line; end lines with a newline")
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower() not in _UTF_8:
            raise BadRegion(f"it declares the encoding {shown(cookie[1], 40)}; save it as UTF-8")
    return text


def _marked(name: str, lines: Sequence[bytes], module: ast.Module | None) -> list[tuple[int, int]]:
    """The rows between each pair of marks; a mark is any line that has the word in it."""
    word = re.compile(rb"(?<![\w-])" + re.escape(name.encode()) + rb"-(START|END)(?![\w-])")
    found: list[tuple[int, int]] = []
    opened: int | None = None
    for row, line in enumerate(lines):
        marks = word.findall(line)
        if not marks:
            continue
        if len(marks) > 1:
            raise BadRegion(f"line {row + 1} has two marks of {name}; give each a line of its own")
        if marks[0] == b"START":
            if opened is not None:
                raise BadRegion(f"the mark {name}-START of line {opened} is followed by another one in line {row + 1}")
            opened = row + 1
        elif opened is None:
            raise BadRegion(f"the mark {name}-END of line {row + 1} has no {name}-START before it")
        else:
            found.append((opened, row))
            opened = None
    if opened is not None:
        raise BadRegion(f"the mark {name}-START of line {opened} has no {name}-END behind it")
    if not found:
        raise BadRegion(f"it has no marks {name}-START and {name}-END")
    if module is not None:
        _refuse_hidden_marks(name, [row for pair in found for row in (pair[0] - 1, pair[1])], lines, module)
    return found


def _refuse_hidden_marks(name: str, rows: Iterable[int], lines: Sequence[bytes], module: ast.Module) -> None:
    """A mark of a Python file is a comment: within a text, what is behind it would not be what it looks like.

    Every piece of an f-string can say that it is as long as the whole, so a text is never walked line by line.
    """
    marks = sorted(rows)
    inside: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            at = bisect_left(marks, node.lineno - 1)
            if at < len(marks) and marks[at] < (node.end_lineno or node.lineno):
                inside.add(marks[at])
    for row in marks:
        if row in inside or not lines[row].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"#"):
            raise BadRegion(f"the mark {name} of line {row + 1} is not a comment of its own")


def _defined(name: str, module: ast.Module | None, lines: Sequence[bytes]) -> list[tuple[int, int]]:
    """The rows of the one definition of this name, decorators and comments at its end included."""
    if module is None:
        raise BadRegion(f"it cannot be read as Python, so {name} is not found in it")
    found = [node for dotted, node in _definitions(module) if dotted == name]
    if not found:
        raise BadRegion(f"it has no function or class {name}")
    if len(found) > 1:
        places = " and ".join(str(node.lineno) for node in found[:3])
        raise BadRegion(f"it defines {name} more than once, in the lines {places}")
    node = found[0]
    first = min([node.lineno, *(it.lineno for it in node.decorator_list)]) - 1
    end = node.end_lineno or node.lineno
    for row in range(end, len(lines)):
        text = lines[row].lstrip()
        if text.startswith(b"#") and len(lines[row]) - len(text) > node.col_offset:
            end = row + 1
        elif text:
            break
    return [(first, end)]


def _definitions(
    module: ast.Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """All of them, in the order of the file, with the names of the definitions around them; a branch counts."""
    waiting: list[tuple[str, ast.AST]] = [("", module)]
    while waiting:
        around, node = waiting.pop()
        inner = around
        if isinstance(node, _DEFINES):
            yield f"{around}{node.name}", node
            inner = f"{around}{node.name}."
        if not isinstance(node, ast.expr):
            waiting.extend((inner, child) for child in reversed(list(ast.iter_child_nodes(node))))
