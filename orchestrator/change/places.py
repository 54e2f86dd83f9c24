"""Where a hunk's old lines stand in a file, and what the file becomes.

Every hunk is sought in the file as it was. One place is enough whatever the line numbers say; of several, the claimed
one is taken, unless another hunk of this file has shown the numbers to be wrong. Nothing is ever placed by distance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from orchestrator.change.edits import Hunk, Line, Sign
from orchestrator.change.effort import Effort
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.text import shown

_LOOK = 32  # to look at a place at all costs as much as some lines
_BLANKS = b" \t\r"


class Page:
    """Lines that can be searched for a run of lines, with bounded effort: a file may be made to be hard to search."""

    def __init__(self, lines: Sequence[bytes], effort: Effort) -> None:
        self.lines = lines
        self._effort = effort

    def places(self, wanted: Sequence[bytes]) -> list[int] | None:
        """The first two places: enough to know whether there is just one. None after too much effort."""
        rarest = min(range(len(wanted)), key=lambda at: len(self.where.get(wanted[at], ())))
        found: list[int] = []
        for at in self.where.get(wanted[rarest], ()):
            if not self._effort.sought(_LOOK):
                return None
            if self.has(wanted, at - rarest):
                found.append(at - rarest)
            if len(found) == 2:
                break
        return found

    def has(self, wanted: Sequence[bytes], at: int) -> bool:
        end = at + len(wanted)
        if at < 0 or end > len(self.lines) or self.lines[at] != wanted[0] or self.lines[end - 1] != wanted[-1]:
            return False
        self._effort.sought(len(wanted))
        return list(self.lines[at:end]) == list(wanted)

    @cached_property
    def where(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for at, line in enumerate(self.lines):
            found.setdefault(line, []).append(at)
        return found


@dataclass(frozen=True)
class _Placed:
    hunk: Hunk
    places: list[int]
    page: Page  # the one that it was found in
    old: Sequence[bytes]  # as it was found there

    def settled(self, *, numbers_hold: bool) -> int | None:
        if len(self.places) == 1:
            return self.places[0]
        claim = self.hunk.claim
        if claim is None or not numbers_hold or not self.page.has(self.old, claim):
            return None
        return None if _may_end_file(self.hunk, self.page, self.old, claim) else claim

    @property
    def contradicts_claim(self) -> bool:
        return len(self.places) == 1 and self.hunk.claim not in (None, self.places[0])


def _may_end_file(hunk: Hunk, page: Page, old: Sequence[bytes], claim: int) -> bool:
    """Whether git would put it at the end of the file, whatever it claims: no unchanged line follows in it."""
    last = len(page.lines) - len(old)
    return hunk.lines[-1].sign is not Sign.KEPT and claim != last and page.has(old, last)


@dataclass(frozen=True)
class _Insertion:
    """New lines, and the reach of the hunk that brings them: hunks side by side may add at the same place."""

    start: int
    end: int
    lines: list[bytes]

    def overlaps(self, other: "_Insertion") -> bool:
        return self.start < other.end and other.start < self.end


class Patch:
    """One file and the hunks for it."""

    def __init__(self, path: str, data: bytes, hunks: Sequence[Hunk], effort: Effort | None = None) -> None:
        self._effort = effort or Effort()
        self._path = shown(path)
        self._hunks = hunks
        self._lines = data.removesuffix(b"\n").split(b"\n") if data else []
        self._open = bool(data) and not data.endswith(b"\n")
        self._inserted: dict[int, list[_Insertion]] = {}
        self._gone: set[int] = set()

    def result(self) -> bytes:
        placed = self._where_claimed() or [self._find(number, hunk) for number, hunk in enumerate(self._hunks, 1)]
        numbers_hold = not any(one.contradicts_claim for one in placed)
        for number, one in enumerate(placed, 1):
            place = one.settled(numbers_hold=numbers_hold)
            if place is None:
                raise Refusal(Reason.CONTEXT_AMBIGUOUS, f"hunk {number} of {self._path}")
            self._apply(number, one, place)
        return self._joined()

    def _where_claimed(self) -> list[_Placed] | None:
        """All hunks where they say they are, as in every diff that a machine made; then nothing has to be sought."""
        placed: list[_Placed] = []
        for hunk in self._hunks:
            old, claim = hunk.old, hunk.claim
            if claim is None or not old or not self._exact.has(old, claim):
                return None
            if hunk.ends_file and claim + len(old) < len(self._lines):
                return None
            if _may_end_file(hunk, self._exact, old, claim):
                return None
            placed.append(_Placed(hunk, [claim], self._exact, old))
        return placed

    def _find(self, number: int, hunk: Hunk) -> _Placed:
        if not hunk.old:
            if self._lines or len(self._hunks) > 1:
                raise Refusal(Reason.CONTEXT_AMBIGUOUS, f"hunk {number} of {self._path} has no unchanged line")
            return _Placed(hunk, [0], self._exact, [])
        shorter = replace(hunk, lines=hunk.lines[: -hunk.doubtful_tail]) if hunk.doubtful_tail else None
        for version in filter(None, (hunk, shorter)):
            if not version.old:
                continue
            for page, old in ((self._exact, version.old), (self._loose, [_loose(line) for line in version.old])):
                places = self._places(page, old, version)
                if places is None:
                    raise Refusal(Reason.CONTEXT_AMBIGUOUS, f"hunk {number} of {self._path} has common lines only")
                if places:
                    return _Placed(version, places, page, old)
        stranger = next((line for line in hunk.old if _loose(line) not in self._loose.where), None)
        what = f", this line is nowhere in it: {shown(stranger)}" if stranger is not None else ""
        raise Refusal(Reason.CONTEXT_MISSING, f"hunk {number} of {self._path}{what}")

    def _places(self, page: Page, old: Sequence[bytes], hunk: Hunk) -> list[int] | None:
        if not hunk.ends_file:
            return page.places(old)
        last = len(self._lines) - len(old)
        return [last] if page.has(old, last) else []

    def _apply(self, number: int, placed: _Placed, place: int) -> None:
        at = place
        inserted: dict[int, _Insertion] = {}
        gone: set[int] = set()
        for line in self._with_line_ends(placed):
            if line.sign is Sign.NEW:
                inserted.setdefault(at, _Insertion(place, place + len(placed.old), [])).lines.append(line.text)
                continue
            if line.sign is Sign.GONE:
                gone.add(at)
            at += 1
        clash = any(new.overlaps(old) for at, new in inserted.items() for old in self._inserted.get(at, ()))
        if clash or gone & self._gone:
            raise Refusal(Reason.OVERLAP, f"hunk {number} of {self._path}")
        self._gone |= gone
        for at, insertion in inserted.items():
            self._inserted.setdefault(at, []).append(insertion)
        if placed.hunk.ends_file:
            self._open = placed.hunk.new_open

    def _with_line_ends(self, placed: _Placed) -> Sequence[Line]:
        """A hunk that was found only by ignoring blanks at line ends takes the file's own line ends."""
        lines = placed.hunk.lines
        if placed.page is self._exact:
            return lines
        if self._returns == len(self._lines):
            return [Line(line.sign, line.text.removesuffix(b"\r") + b"\r") for line in lines]
        if not self._returns and all(line.text.endswith(b"\r") for line in lines):
            return [Line(line.sign, line.text[:-1]) for line in lines]
        return lines

    def _joined(self) -> bytes:
        kept: list[bytes] = []
        for at in range(len(self._lines) + 1):
            for insertion in sorted(self._inserted.get(at, ()), key=lambda one: one.start):
                kept += insertion.lines
            if at < len(self._lines) and at not in self._gone:
                kept.append(self._lines[at])
        text = b"".join(line + b"\n" for line in kept)
        return text[:-1] if self._open else text

    @cached_property
    def _returns(self) -> int:
        return sum(line.endswith(b"\r") for line in self._lines)

    @cached_property
    def _exact(self) -> Page:
        return Page(self._lines, self._effort)

    @cached_property
    def _loose(self) -> Page:
        return Page([_loose(line) for line in self._lines], self._effort)


def _loose(line: bytes) -> bytes:
    return line.rstrip(_BLANKS)
