"""Read a unified diff as machines write it, and as language models do.

Line counts of a hunk are believed where they fit the lines that follow. Where they do not, the hunk goes on as long as
lines look like its own, and what is left over must not look like a part of it: half of a hunk is never applied.
Of a diff that a machine wrote, counts that are missing or do not fit mean that it was cut off: `exact` refuses them,
and what git would read in another way.
"""

from collections.abc import Sequence

from orchestrator.change.edits import Edit, Hunk, Kind, Line, Sign
from orchestrator.change.headers import Header, read_header, starts_section
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.text import shown

_SIGNS = {b" ": Sign.KEPT, b"-": Sign.GONE, b"+": Sign.NEW}
_BLANK = (b"", b"\r")
_SIGNATURE = (b"-- ", b"--")
_NO_NEWLINE = b"\\ "
_DIGITS = 9
_FENCES = (b"```", b"~~~")
_HASH_LENGTHS = (40, 64)


def parse_unified(lines: Sequence[bytes], hunk_cap: int, *, exact: bool = False) -> tuple[Edit, ...]:
    edits: dict[str, Edit] = {}
    at, hunks_left, after_header, bare = 0, hunk_cap, False, False
    while at < len(lines):
        line = lines[at]
        if starts_section(lines, at):
            header, at = read_header(lines, at, exact=exact)
            hunks, at = _read_hunks(lines, at, hunks_left, exact=exact)
            if exact and header.has_more and not hunks:
                raise Refusal(
                    Reason.MALFORMED, f"{shown(header.path)} has a header and no hunk; the text may be cut off"
                )
            if exact and (header.path in edits or (bare and not header.bare)):
                why = "comes twice" if header.path in edits else "has letters before its name, and one above has none"
                raise Refusal(Reason.MALFORMED, f"{shown(header.path)} {why}: git would take other lines or files")
            hunks_left -= len(hunks)
            after_header, bare = True, bare or header.bare
            _keep(edits, header, hunks)
            continue
        if line.startswith(b"@@"):
            raise Refusal(Reason.MALFORMED, f"line {at + 1}: a hunk without a file header above it")
        if line.startswith((b"GIT binary patch", b"Binary files ")):
            raise Refusal(Reason.BINARY, f"line {at + 1}")
        if after_header and _is_left_over(line):
            raise Refusal(Reason.MALFORMED, f"line {at + 1} looks like part of the hunk above: {shown(line)}")
        after_header = after_header and not line.startswith(_FENCES)
        at += 1
    return tuple(edits.values())


def _keep(edits: dict[str, Edit], header: Header, hunks: tuple[Hunk, ...]) -> None:
    edit = Edit(header.kind, header.path, header.source, hunks, executable=header.executable)
    earlier = edits.get(edit.path)
    if earlier is None:
        edits[edit.path] = edit
    elif earlier.kind is edit.kind is Kind.MODIFY and earlier.executable is edit.executable is None:
        edits[edit.path] = Edit(Kind.MODIFY, edit.path, hunks=earlier.hunks + hunks)
    else:
        raise Refusal(Reason.PATH_TWICE, shown(edit.path))


def _is_left_over(line: bytes) -> bool:
    is_bullet = line[:2] == b"- " and line[2:3].strip() != b""
    is_rule = not line.strip(b"- \r")
    return line.startswith(b"+") or (line.startswith(b"-") and not is_bullet and not is_rule)


def _read_hunks(lines: Sequence[bytes], at: int, cap: int, *, exact: bool) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    while at < len(lines) and lines[at].startswith(b"@@"):
        if len(hunks) == cap:
            raise Refusal(Reason.TOO_MANY_HUNKS, f"line {at + 1}")
        numbers, counts = _claims(lines[at])
        end = _end_by_counts(lines, at + 1, *counts) if counts else None
        if end is None:
            if exact:
                wrong = "has other lines than its header says" if counts else "does not say how many lines it has"
                raise Refusal(Reason.MALFORMED, f"line {at + 1}: the hunk {wrong}; the text may be cut off")
            end = _end_by_looks(lines, at + 1)
        hunks.append(_hunk(lines[at + 1 : end], numbers, at + 1))
        at = end
    return tuple(hunks), at


def _claims(header: bytes) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """`@@ -12,3 +14,5 @@`: where the hunk claims to start, and how many old and new lines it claims to have. What is
    not said is 0.
    """
    if header.startswith(b"@@@"):
        raise Refusal(Reason.MALFORMED, "a combined diff")
    words = header.split(b" ", 3)
    if len(words) < 4 or words[1][:1] != b"-" or words[2][:1] != b"+":
        return (0, 0), None
    (old_start, old_count), (new_start, new_count) = (_range(word[1:]) for word in words[1:3])
    return (old_start or 0, new_start or 0), None if old_count is None or new_count is None else (old_count, new_count)


def _range(word: bytes) -> tuple[int | None, int | None]:
    start, comma, count = word.partition(b",")
    return _number(start), _number(count) if comma else 1


def _number(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS else None


def _end_by_counts(lines: Sequence[bytes], at: int, old: int, new: int) -> int | None:
    """The end of a hunk whose counts are right, or None where they are not."""
    while (old or new) and at < len(lines):
        line = lines[at]
        sign = Sign.KEPT if line in _BLANK else _SIGNS.get(line[:1])
        if sign is None and not line.startswith(_NO_NEWLINE):
            return None
        old -= sign in (Sign.KEPT, Sign.GONE)
        new -= sign in (Sign.KEPT, Sign.NEW)
        if old < 0 or new < 0:
            return None
        at += 1
    if at < len(lines) and lines[at].startswith(_NO_NEWLINE):
        at += 1
    return None if old or new or _goes_on(lines, at) else at


def _goes_on(lines: Sequence[bytes], at: int) -> bool:
    """Whether the lines after a hunk look as if they still belonged to it."""
    if at == len(lines) or starts_section(lines, at) or lines[at].removesuffix(b"\r") in _SIGNATURE:
        return False
    if lines[at].strip():
        return lines[at][:1] in _SIGNS
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at < len(lines) and lines[at].startswith(b"+")


def _end_by_looks(lines: Sequence[bytes], at: int) -> int:
    while at < len(lines):
        line = lines[at]
        is_own = line in _BLANK or line[:1] in _SIGNS or line.startswith(_NO_NEWLINE)
        if not is_own or line.removesuffix(b"\r") in _SIGNATURE or starts_section(lines, at):
            return at
        at += 1
    return at


def _hunk(body: Sequence[bytes], numbers: tuple[int, int], number: int) -> Hunk:
    lines: list[Line] = []
    open_sides: set[Sign] = set()
    tail = 0
    for raw in body:
        if raw.startswith(_NO_NEWLINE):
            open_sides |= _opened(lines, number)
            continue
        blank = raw in _BLANK
        if blank and open_sides:
            continue  # nothing can follow the end of the file, so it ends the text only
        line = Line(Sign.KEPT, b"") if blank else Line(_SIGNS[raw[:1]], raw[1:])
        if open_sides and (line.sign is Sign.KEPT or {Sign.KEPT, line.sign} & open_sides):
            raise Refusal(Reason.MALFORMED, f"line {number}: the file goes on after its end")
        _refuse_submodule(line)
        tail = tail + 1 if blank else 0
        lines.append(line)
    if len(lines) == tail:
        raise Refusal(Reason.MALFORMED, f"line {number}: a hunk without lines")
    old_open, new_open = Sign.GONE in open_sides, Sign.NEW in open_sides
    claim = numbers[0] - 1 if numbers[0] else None
    return Hunk(tuple(lines), claim, tail, old_open, new_open, numbers)


def _opened(lines: Sequence[Line], number: int) -> set[Sign]:
    """The sides that end without a newline: those of the line above the marker."""
    if not lines:
        raise Refusal(Reason.MALFORMED, f"line {number}: a hunk that starts with the end of the file")
    sign = lines[-1].sign
    return {Sign.GONE, Sign.NEW, Sign.KEPT} if sign is Sign.KEPT else {sign}


def _refuse_submodule(line: Line) -> None:
    start, _, digest = line.text.rstrip().partition(b"Subproject commit ")
    if not start and line.sign is not Sign.KEPT and len(digest.removesuffix(b"-dirty")) in _HASH_LENGTHS:
        raise Refusal(Reason.SUBMODULE, shown(line.text))
