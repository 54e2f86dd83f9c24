"""The lines above a file's hunks in a unified diff, and what they say: which file, which sides, which mode.

A name stands in up to three places of a header. They must agree: what a person reads in one place is what happens.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.change.edits import Kind
from orchestrator.change.quoting import quoted, unquoted
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.text import shown

GIT = b"diff --git "
OLD, NEW = b"--- ", b"+++ "
NOWHERE = "/dev/null"
_BINARY = (b"GIT binary patch", b"Binary files ")
_FIELDS = (
    b"old mode ",
    b"new mode ",
    b"new file mode ",
    b"deleted file mode ",
    b"rename from ",
    b"rename to ",
    b"copy from ",
    b"copy to ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
)
# What git reads as a renaming, too, and nobody has written for twenty years.
_OF_OLD = (b"rename old ", b"rename new ")
# Git takes a day off the end of a name, and by a day that is none it tells that there is no file.
_DAY = re.compile(r"[ \t](\d\d)?\d\d-\d\d-\d\d([ \t]|$)")
_NO_DAY = ("1969-12-31 ", "1970-01-01 ")
# What git calls a file without content, by either of its hashes.
_EMPTY = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
_MODES = {"100644": False, "100755": True}


@dataclass(frozen=True)
class Header:
    """`has_more`: hunks must follow, or the text was cut off. `bare`: no name in it has a letter before it."""

    kind: Kind
    path: str
    source: str
    executable: bool | None
    has_more: bool
    bare: bool


def starts_section(lines: Sequence[bytes], at: int) -> bool:
    line = lines[at]
    return line.startswith(GIT) or (line.startswith(OLD) and at + 1 < len(lines) and lines[at + 1].startswith(NEW))


def read_header(lines: Sequence[bytes], at: int, *, exact: bool = False) -> tuple[Header, int]:
    """The header that starts here, and the index of the line after it. `exact` refuses what git reads otherwise."""
    fields: dict[bytes, str] = {}
    if lines[at].startswith(GIT):
        fields[GIT] = _value(lines[at], GIT)
        at = _read_fields(lines, at + 1, fields)
    if at < len(lines) and lines[at].startswith(OLD) and starts_section(lines, at):
        fields[OLD], fields[NEW] = _value(lines[at], OLD), _value(lines[at + 1], NEW)
        at += 2
    executable = _executable(fields)
    kind, source, path = _sides(fields)
    if exact:
        _refuse_other_reading(fields)
    if GIT in fields and not _agrees(fields[GIT], source, path):
        raise Refusal(Reason.MALFORMED, f"the header names different files: {shown(fields[GIT])}")
    has_source = kind in (Kind.RENAME, Kind.COPY)
    return Header(kind, path, source if has_source else "", executable, _has_more(fields), _is_bare(fields)), at


def _has_more(fields: Mapping[bytes, str]) -> bool:
    """Whether lines of the file, or another content, were announced. Where nothing of it changes, git writes neither;
    of a file without content that comes or goes, it writes what that is called.
    """
    if OLD in fields or (b"old mode " in fields) != (b"new mode " in fields):
        return True
    if b"index " not in fields:
        return False
    sides = [side for side in fields[b"index "].partition(" ")[0].split("..") if side.strip("0")]
    return not all(any(name.startswith(side) for name in _EMPTY) for side in sides)


def _is_bare(fields: Mapping[bytes, str]) -> bool:
    """Whether git learns here to take no folder off the names."""
    return GIT not in fields and not any("/" in side for side in _told(fields) if side != NOWHERE)


def _told(fields: Mapping[bytes, str]) -> list[str]:
    """Both names as they are written, without what a diff says of their times."""
    if OLD in fields:
        return [unquoted(fields[name].partition("\t")[0]) for name in (OLD, NEW)]
    middle = len(fields[GIT]) // 2
    return [unquoted(half) for half in (fields[GIT][:middle], fields[GIT][middle + 1 :])]


def _refuse_other_reading(fields: Mapping[bytes, str]) -> None:
    """Git takes the first folder off every name, whatever it is, and /dev/null for a file of that name where no mode
    says that there is none.
    """
    if OLD not in fields and fields.keys() & {b"rename from ", b"copy from "}:
        return
    told, letters = _told(fields), ("a/", "b/")
    if any("/" in side for side in told if side != NOWHERE):
        for side, letter in zip(told, letters, strict=True):
            if side != NOWHERE and not side.startswith(letter):
                what = f"{shown(side)} is written without {letter}, and git would take another file"
                raise Refusal(Reason.MALFORMED, what)
    if GIT in fields and NOWHERE in told and not fields.keys() & {b"new file mode ", b"deleted file mode "}:
        raise Refusal(Reason.MALFORMED, f"{shown(fields[GIT])} comes or goes, and no mode of it is told")
    for name in () if GIT in fields else (OLD, NEW):  # below a line of its own, git looks for no day
        _refuse_day(fields.get(name, ""), goes=name == NEW, quoted=fields.get(name, "").startswith('"'))


def _refuse_day(told: str, *, goes: bool, quoted: bool) -> None:
    name, _, when = told.partition("\t")
    if (_DAY.search(name) and not quoted) or "\t" in when:
        raise Refusal(Reason.MALFORMED, f"{shown(told)} has a day in it, which git takes off a name")
    if goes and when.startswith(_NO_DAY):
        raise Refusal(Reason.MALFORMED, f"{shown(told)} has a day on which there is no file, and no {NOWHERE}")


def _read_fields(lines: Sequence[bytes], at: int, fields: dict[bytes, str]) -> int:
    while at < len(lines):
        line = lines[at]
        if line.startswith(_BINARY):
            raise Refusal(Reason.BINARY, shown(fields[GIT]))
        if line.startswith(_OF_OLD):
            raise Refusal(Reason.MALFORMED, f"an older way to rename: {shown(line)}")
        field = next((name for name in _FIELDS if line.startswith(name)), None)
        if field is None:
            return at
        if field in fields:
            raise Refusal(Reason.MALFORMED, f"header line given twice: {shown(line)}")
        fields[field] = _value(line, field)
        at += 1
    return at


def _value(line: bytes, prefix: bytes) -> str:
    return line[len(prefix) :].removesuffix(b"\r").decode()


def _executable(fields: Mapping[bytes, str]) -> bool | None:
    index_mode = fields.get(b"index ", "").partition(" ")[2]
    said = [fields.get(name) for name in (b"old mode ", b"deleted file mode ")]
    wanted = [fields.get(name) for name in (b"new mode ", b"new file mode ")]
    for mode in [*said, *wanted, index_mode or None]:
        _check_mode(mode)
    modes = {_MODES[mode] for mode in wanted if mode is not None}
    if len(modes) > 1:
        raise Refusal(Reason.MALFORMED, "the header gives two modes")
    return modes.pop() if modes else None


def _check_mode(mode: str | None) -> None:
    if mode is None or mode in _MODES:
        return
    reason = {"120000": Reason.SYMLINK, "160000": Reason.SUBMODULE}.get(mode, Reason.MODE)
    raise Refusal(reason, f"mode {shown(mode, 20)}")


def _sides(fields: Mapping[bytes, str]) -> tuple[Kind, str, str]:
    kind = _stated_kind(fields)
    if kind is Kind.RENAME:
        source, path = fields.get(b"rename from "), fields.get(b"rename to ")
    elif kind is Kind.COPY:
        source, path = fields.get(b"copy from "), fields.get(b"copy to ")
    else:
        source = path = None
    if kind in (Kind.RENAME, Kind.COPY):
        if source is None or path is None:
            raise Refusal(Reason.MALFORMED, "a rename or copy needs both its sides")
        source, path = unquoted(source), unquoted(path)
        if OLD in fields and _plain_sides(fields) != (source, path):
            raise Refusal(Reason.MALFORMED, f"the header names different files: {shown(fields[OLD])}")
        return kind, source, path
    if OLD not in fields:
        path = _from_git_line(fields[GIT])
        return kind or Kind.MODIFY, path, path
    return _existence(kind, *_plain_sides(fields))


def _stated_kind(fields: Mapping[bytes, str]) -> Kind | None:
    kinds = {
        kind
        for name, kind in (
            (b"new file mode ", Kind.CREATE),
            (b"deleted file mode ", Kind.DELETE),
            (b"rename from ", Kind.RENAME),
            (b"rename to ", Kind.RENAME),
            (b"copy from ", Kind.COPY),
            (b"copy to ", Kind.COPY),
        )
        if name in fields
    }
    if len(kinds) > 1:
        raise Refusal(Reason.MALFORMED, "the header says two things of one file")
    return kinds.pop() if kinds else None


def _plain_sides(fields: Mapping[bytes, str]) -> tuple[str, str]:
    """What `---` and `+++` name, without `a/` and `b/`. Equal names are taken as they are: there is a folder a."""
    old, new = (unquoted(fields[name].partition("\t")[0]) for name in (OLD, NEW))
    if old == new:
        return old, new
    return old.removeprefix("a/"), new.removeprefix("b/")


def _existence(kind: Kind | None, old: str, new: str) -> tuple[Kind, str, str]:
    found = Kind.MODIFY
    if old == NOWHERE and new != NOWHERE:
        found, old = Kind.CREATE, new
    elif new == NOWHERE and old != NOWHERE:
        found, new = Kind.DELETE, old
    if old != new:
        raise Refusal(Reason.MALFORMED, f"two names for one file: {shown(old)} and {shown(new)}")
    if kind not in (None, found):
        raise Refusal(Reason.MALFORMED, f"the header says two things of {shown(new)}")
    return found, old, new


def _from_git_line(names: str) -> str:
    """Both names of a `diff --git` line are the same here, so the line has two equal halves."""
    middle = len(names) // 2
    old, new = (unquoted(half) for half in (names[:middle], names[middle + 1 :]))
    if old.removeprefix("a/") == new.removeprefix("b/") and names[middle : middle + 1] == " ":
        return old if old == new else new.removeprefix("b/")
    raise Refusal(Reason.MALFORMED, f"the header names different files: {shown(names)}")


def _agrees(names: str, source: str, path: str) -> bool:
    spellings = {f"{quoted(f'a/{source}')} {quoted(f'b/{path}')}", f"a/{source} b/{path}", f"{source} {path}"}
    if names in spellings:
        return True
    if not names.startswith('"') and not names.endswith('"'):
        return False
    # Git quotes every byte beyond ASCII, unless it is told not to; so compare what the quotes hold.
    meant = {(f"a/{source}", f"b/{path}"), (source, path)}
    return any((unquoted(names[:middle]), unquoted(names[middle + 1 :])) in meant for middle in _gaps(names))


def _gaps(names: str) -> list[int]:
    """Where a quoted name meets the other: at most a handful of places are tried."""
    edges = [names.find('" '), names.find(' "')]
    return [edges[0] + 1] * (edges[0] >= 0) + [edges[1]] * (edges[1] >= 0)
