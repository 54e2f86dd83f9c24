"""Lines of any text: other languages, settings, and Python that cannot be parsed.

Little is known of such a file, so little is risked: numbers outside of comments, and whole lines that are closed in
themselves and stand at the same depth as their neighbours.
"""

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from orchestrator.change.regions import BadRegion, Region, Span, spans
from orchestrator.proposers.operators.crossing import lines_from
from orchestrator.proposers.operators.edit import Edit, Splice, counted, line_of, listed, snippet, spliced
from orchestrator.proposers.operators.hints import Hints, pick
from orchestrator.proposers.operators.numbers import continued, is_real, read_number, stepped

MOST_AT_ONCE = 32
NEAR = 8
LONGEST_LINE = 2_000
MOST_NUMBERS = 5_000
# A number on its own: 1.5, -3, 2e9, 1.0f; neither part of a name (x86), of a version (1.2.3) nor of a word (0x1f).
_NUMBER = re.compile(
    rb"(?<![\w.$])((?:(?<=[\s,:=(\[{<>])-|^-)?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?=(?:[fFlLuU]{0,3})(?![\w.]))"
)
_TEXT_IN_QUOTES = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_COMMENTS = {
    "//": (".c .h .cc .cpp .hpp .cu .rs .go .js .ts .java .kt .swift .scala .cs .php .zig .glsl", rb"//|/\*|^\s*\*"),
    "--": (".lua .sql .hs .ada .elm .vhd", rb"--"),
    "%": (".tex .m .erl .pro", rb"%"),
    ";": (".lisp .clj .scm .el .asm .s .ini", rb"(?:^|\s)[;#]"),
    "none": (".json .csv .tsv .txt", rb"(?!)"),
}
_BY_ENDING = {ending: re.compile(form) for endings, form in _COMMENTS.values() for ending in endings.split()}
_OTHERWISE = re.compile(rb"(?:^|\s)#|^\s*//")
_QUOTED = (".json", ".toml", ".c", ".h", ".cc", ".cpp", ".rs", ".go", ".java", ".js", ".ts", ".py")
_OPEN, _CLOSED = b"([{", b")]}"
_FIXED = (b"#!", b"#include", b"#if", b"#endif", b"#else", b"import ", b"from ", b"use ", b"package ", b"using ")


@dataclass(frozen=True)
class Page:
    """A text file as lines, with their ends."""

    path: str
    data: bytes
    regions: tuple[Region, ...] = ()

    @property
    def ending(self) -> str:
        return PurePosixPath(self.path).suffix.lower()

    @cached_property
    def lines(self) -> list[bytes]:
        return self.data.splitlines(keepends=True)

    @cached_property
    def numbers(self) -> list[Splice]:
        """Where numbers stand, each with itself as the new text."""
        found: list[Splice] = []
        at = 0
        for line in self.lines:
            matches = _NUMBER.finditer(self._meant(line)) if len(line) <= LONGEST_LINE else ()
            places = [Splice(at + it.start(1), at + it.end(1), it[1]) for it in matches]
            found += [it for it in places if read_number(it.new.decode()) is not None and self._may_touch(it.start)]
            at += len(line)
            if len(found) > MOST_NUMBERS:
                break
        return found

    @cached_property
    def movable(self) -> list[int]:
        """Lines that could stand elsewhere: closed in themselves, neither blank nor a comment."""
        found, start = [], 0
        for at, line in enumerate(self.lines):
            if self._is_movable(line) and self._may_touch(start):
                found.append(at)
            start += len(line)
        return found

    def _may_touch(self, at: int) -> bool:
        return not self.regions or any(span.start <= at < span.end for span in self._spans)

    @cached_property
    def _spans(self) -> tuple[Span, ...]:
        try:
            return spans(self.path, self.data, self.regions)
        except BadRegion:
            return ()

    def _meant(self, line: bytes) -> bytes:
        """The line with comments and quoted text blanked out, as long as before."""
        if line.startswith((b"#!", b"#include")):
            return b""
        if self.ending in _QUOTED:
            line = _TEXT_IN_QUOTES.sub(lambda text: b"\0" * len(text[0]), line)
        comment = _BY_ENDING.get(self.ending, _OTHERWISE).search(line)
        return line[: comment.start()] if comment else line

    def _is_movable(self, line: bytes) -> bool:
        meant = self._meant(line).strip()
        if not meant or not line.endswith(b"\n") or len(line) > LONGEST_LINE or meant.startswith(_FIXED):
            return False
        if not any(byte in meant for byte in _WORDS):
            return False  # nothing but brackets and signs
        balanced = all(meant.count(opened) == meant.count(closed) for opened, closed in _PAIRS)
        return balanced and not meant.endswith((b":", b"\\"))


_WORDS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_\"'")
_PAIRS = tuple((_OPEN[at : at + 1], _CLOSED[at : at + 1]) for at in range(3))


def line_number(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """One number in a line becomes another."""
    place = pick(rng, page.numbers, lambda it: hints.dull("", it.new.decode()))
    if place is None:
        return None
    old = place.new.decode()
    value = read_number(old)
    new = stepped(value, rng, hints.step("real" if is_real(old) else "whole")) if value is not None else None
    return _moved(page, [(place, new)], "changed {}") if new is not None else None


def line_numbers(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """Several numbers move at once: those of a short file, or some that stand together."""
    if len(page.numbers) < 2:
        return None
    most = min(len(page.numbers), MOST_AT_ONCE)
    first = rng.randrange(len(page.numbers) - most + 1)
    chosen = rng.sample(page.numbers[first : first + most], rng.randint(2, max(2, most // 2 + 1)))
    size = hints.step("several") / math.sqrt(len(chosen))
    moved = []
    for place in sorted(chosen, key=lambda it: it.start):
        value = read_number(place.new.decode())
        new = stepped(value, rng, size) if value is not None else None
        if new is not None:
            moved.append((place, new))
    return _moved(page, moved, "moved {} together") if len(moved) > 1 else None


def line_onward(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """The step of numbers that made it better once more."""
    if hints.before is None:
        return None
    earlier = Page(page.path, hints.before, page.regions)
    if _skeleton(page) != _skeleton(earlier):
        return None
    share = rng.choice((0.5, 1.0, 1.0, 2.0, 4.0)) * math.exp(rng.gauss(0.0, 0.2))
    moved = []
    for place, before in zip(page.numbers, earlier.numbers, strict=True):
        new, old = read_number(place.new.decode()), read_number(before.new.decode())
        if new is None or old is None or new == old:
            continue
        if (further := continued(old, new, share)) is not None:
            moved.append((place, further))
    return _moved(page, moved, "went on with {}") if moved else None


def line_swap(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """Two lines of the same depth, close to each other, change places."""
    del hints
    lines = page.lines
    pairs = [
        (one, two)
        for at, one in enumerate(page.movable)
        for two in page.movable[at + 1 : at + NEAR]
        if two - one <= NEAR and _depth(lines[one]) == _depth(lines[two]) and lines[one] != lines[two]
        if all(_depth(line) >= _depth(lines[one]) for line in lines[one:two] if line.strip())
    ]
    pair = pick(rng, pairs, lambda _: 1.0)
    if pair is None:
        return None
    one, two = pair
    new = [*lines[:one], lines[two], *lines[one + 1 : two], lines[one], *lines[two + 1 :]]
    said = f"swapped the lines {one + 1} and {two + 1}: {snippet(lines[one])} and {snippet(lines[two])}"
    return Edit(b"".join(new), said, one + 1)


def line_clone(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """A line comes a second time."""
    del hints
    at = pick(rng, page.movable, lambda _: 1.0)
    if at is None:
        return None
    lines = page.lines
    new = [*lines[: at + 1], lines[at], *lines[at + 1 :]]
    return Edit(b"".join(new), f"repeated {snippet(lines[at])}", at + 1)


def line_delete(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """A line is left out."""
    del hints
    at = pick(rng, page.movable if len(page.movable) > 1 else (), lambda _: 1.0)
    if at is None:
        return None
    new = [*page.lines[:at], *page.lines[at + 1 :]]
    return Edit(b"".join(new), f"left out {snippet(page.lines[at])}", at + 1)


def line_crossover(page: Page, rng: random.Random, hints: Hints) -> Edit | None:
    """A run of lines from another node."""
    donor = pick(rng, hints.donors(), lambda _: 1.0)
    return lines_from(page.data, donor, rng) if donor else None


def _moved(page: Page, moved: Sequence[tuple[Splice, str]], said: str) -> Edit:
    data = spliced(page.data, [Splice(place.start, place.end, new.encode()) for place, new in moved])
    what = listed([f"{place.new.decode()} to {new}" for place, new in moved])
    if len(moved) > 1:
        what = f"{counted(len(moved), 'number')} ({what})"
    return Edit(data, said.format(what), line_of(page.data, moved[0][0].start))


def _skeleton(page: Page) -> bytes:
    return spliced(page.data, [Splice(place.start, place.end, b"\0") for place in page.numbers])


def _depth(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))
