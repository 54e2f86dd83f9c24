"""A file of any language as the tokens that matter: without comments and blanks, numbers in one writing, and names that
only the file itself knows by the order in which they come.

The text is a candidate's. One pass of one pattern reads it, and no part of the pattern begins again where another one
gave up: what it costs grows with the bytes and with nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from orchestrator.population.python_form import python_form


@dataclass(frozen=True)
class _Language:
    """`comments` are patterns; `lines` and `indents` say whether ends of lines and indentation mean something;
    `declares`: a name that is assigned to is the file's own, wherever it stands.
    """

    comments: tuple[str, ...] = ()
    lines: bool = True
    indents: bool = False
    declares: bool = False


_SLASHES = (r"//[^\n]*", r"/\*[\s\S]*?(?:\*/|\Z)")
_HASH = (r"(?:(?<=\s)|^)\#(?!!)[^\n]*",)
_C = _Language(_SLASHES, lines=False, declares=True)
_JS = _Language(_SLASHES, declares=True)
_SHELL = _Language(_HASH)
_PYTHON = _Language(_HASH, indents=True)
_TABLE = {
    "c h cc cpp cxx hpp cu cuh java cs rs php zig d glsl wgsl metal proto css": _C,
    "js ts jsx tsx mjs go kt swift scala groovy dart": _JS,
    "sh bash zsh rb pl r jl toml ini cfg conf ex exs cmake tcl ps1": _SHELL,
    "py pyi yaml yml nim mk": _PYTHON,
    "sql ada vhd": _Language((r"--[^\n]*",), lines=False),
    "lua": _Language((r"--\[\[[\s\S]*?(?:\]\]|\Z)", r"--[^\n]*"), declares=True),
    "hs elm": _Language((r"--[^\n]*", r"\{-[\s\S]*?(?:-\}|\Z)"), indents=True),
    "m erl tex": _Language((r"%[^\n]*",)),
    "lisp clj scm el rkt asm s": _Language((r";[^\n]*",)),
    "json": _Language(lines=False),
}
_LANGUAGES = {suffix: language for suffixes, language in _TABLE.items() for suffix in suffixes.split()}
# Of a language that is not known, no character is known to be idle but blanks at the end of a line.
_UNKNOWN = _Language(indents=True)
_PARTS = (
    r"(?P<directive>^[ \t]*\#(?:[^\n\\]|\\[\s\S])*)",
    r'(?P<text>"""[\s\S]*?(?:"""|\Z)|"(?:\\[\s\S]|[^"\\\n])*+"?|\'(?:\\[\s\S]|[^\'\\\n])*+\'?|`[^`]*+`?)',
    r"(?P<number>(?:\d|\.\d)(?:[eEpP][+-](?=\d)|[\w.])*+)",
    r"(?P<name>[^\W\d]\w*+)",
    r"(?P<line>\n[ \t]*+)",
    r"(?P<blank>[^\S\n]++)",
    r"(?P<sign>\+\+|--|->|=>|[=!<>+*/%&|^:-]=|&&|\|\||<<|>>|::|\*\*|//|\.\.|[\s\S])",
)
_LONGEST_NUMBER = 40
_WHOLE = re.compile(r"0[xXbBoO][0-9a-fA-F]+|0|[1-9][0-9]*")
_REAL = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ASSIGN = {"=", ":=", "+=", "-=", "*=", "/="}
_DECLARE = {"let", "var", "const", "auto", "mut", "val", "local", "int", "long", "float", "double", "bool", "size_t"}
_OUTWARD = {".", "->", "::"}

Kept = frozenset[str] | None
_Token = tuple[str, str]


def tokens(path: str, text: str, kept: Kept = frozenset()) -> tuple[str, ...]:
    """`kept` are names that stay as they are, all of them where it is None. Others are numbered where the file itself
    brings them into being, so that another name for the same thing is the same.
    """
    suffix = path.rpartition(".")[2].lower() if "." in path else ""
    language = _LANGUAGES.get(suffix, _UNKNOWN)
    if suffix in ("py", "pyi") and (formed := python_form(text, kept)) is not None:
        return tuple(word for _, word in _read(formed, suffix))
    found = _read(text, suffix)
    return tuple(_numbered(found, kept) if language.declares and kept is not None else (word for _, word in found))


def names_in(path: str, text: str) -> frozenset[str]:
    """All names in a file."""
    suffix = path.rpartition(".")[2].lower() if "." in path else ""
    return frozenset(word for kind, word in _read(text, suffix) if kind == "name")


def _read(text: str, suffix: str) -> list[_Token]:
    language = _LANGUAGES.get(suffix, _UNKNOWN)
    found: list[_Token] = []
    for match in _pattern(suffix).finditer(text):
        kind, word = match.lastgroup or "", match.group()
        if kind == "number":
            word = _number(word)
        elif kind == "directive":
            word = " ".join(word.split())
        elif kind == "line":
            if not language.lines or match.end() == len(text) or text[match.end()] in "\n\r":
                continue
            word = f"\n{word.expandtabs()[1:] if language.indents else ''}"
            if found and found[-1][0] == "line":
                found.pop()
        if kind not in ("comment", "blank"):
            found.append((kind, word))
    return found


@cache
def _pattern(suffix: str) -> re.Pattern[str]:
    language = _LANGUAGES.get(suffix, _UNKNOWN)
    comment = "|".join(language.comments)
    parts = _PARTS if language is _C else _PARTS[1:]
    return re.compile("|".join([f"(?P<comment>{comment})", *parts] if comment else parts), re.MULTILINE)


def _number(word: str) -> str:
    """`1_000`, `0x10` and `1e0` in one writing each; whole numbers and others are not the same."""
    plain = word.replace("_", "")
    if len(plain) > _LONGEST_NUMBER:
        return word
    if _WHOLE.fullmatch(plain):
        return str(int(plain, 0))
    return repr(float(plain)) if _REAL.fullmatch(plain) and not plain.isdigit() else word


def _numbered(found: Sequence[_Token], kept: frozenset[str]) -> list[str]:
    own: set[str] = set()
    outward = set(kept)
    before = ""
    for at, (kind, word) in enumerate(found):
        after = found[at + 1][1] if at + 1 < len(found) else ""
        if kind == "name" and (before in _OUTWARD or after in ("(", ":")):
            outward.add(word)
        elif kind == "name" and (after in _ASSIGN or before in _DECLARE):
            own.add(word)
        before = word
    own -= outward
    numbers: dict[str, str] = {}
    return [
        numbers.setdefault(word, f"§{len(numbers)}") if kind == "name" and word in own else word for kind, word in found
    ]
