"""How two texts differ, as edits of which any selection can be made: from hunks down to single tokens.

A hunk of a diff holds all changes that stand near each other, so hunks alone are too coarse. Each edit therefore knows
the hunk, the block, the statement and the line that it is part of, and these are tried in turn.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orchestrator.change import Effort
from orchestrator.change.comparison import Run, common_runs
from orchestrator.python_source import parse_python

# Changes with no more than so many common lines between them are one hunk, as `diff` shows them.
_NEAR = 6
# A line of which more tokens than this changed was rewritten: it is one edit.
_TOKENS = 12
# Of two lines that are versions of each other, so large a share of the words is common.
_ALIKE = 0.25
# Lines of a gap that are compared with each other, old with new.
_PAIRED = 2500
_TOKEN = re.compile(
    rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[ \t]+"
    rb"|\*\*|//|<<|>>|[<>=!]=|->|:=|&&|\|\||.",
    re.DOTALL,
)


@dataclass(frozen=True)
class Edit:
    """Bytes `start` to `end` of the old text become `put`. `line` is where it stands in the new text, from 1 on.

    The other fields are names: edits that share one belong to the same hunk, block, statement or line.
    """

    start: int
    end: int
    put: bytes
    line: int
    hunk: int
    block: str
    statement: str
    row: int


@dataclass(frozen=True)
class _Change:
    """Old lines `a` to `b` become new lines `c` to `d`; all counted from 0."""

    a: int
    b: int
    c: int
    d: int


def edits_between(old: bytes, new: bytes, effort: Effort, *, python: bool) -> list[Edit]:
    """In the order of the text; together they make the new text of the old one."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = _starts(before)
    scopes = (_Scopes(old, python=python), _Scopes(new, python=python))
    gaps = list(_gaps(common_runs(before, after, effort)))
    touched = {line for gap in gaps for line in range(gap.c, gap.d)}
    found: list[Edit] = []
    row = 0
    for hunk, gap in _numbered(gaps):
        for change in _lines_of(gap, before, after):
            place = (scopes[1], change.c) if change.c < change.d else (scopes[0], change.a)
            names = (hunk, place[0].block(place[1], touched), place[0].statement(place[1]), row)
            for start, end, put in _tokens_of(change, before, after, effort):
                found.append(Edit(starts[change.a] + start, starts[change.a] + end, put, change.c + 1, *names))
            row += 1
    return found


def _starts(lines: Sequence[bytes]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _gaps(runs: Sequence[Run]) -> Iterator[_Change]:
    for one, two in pairwise(runs):
        yield _Change(one.old + one.length, two.old, one.new + one.length, two.new)


def _numbered(gaps: Sequence[_Change]) -> Iterator[tuple[int, _Change]]:
    hunk, last = 0, None
    for gap in gaps:
        hunk += last is not None and gap.a - last > _NEAR
        last = gap.b
        yield hunk, gap


def _lines_of(gap: _Change, before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[_Change]:
    """Line by line: which old line became which new one, what is new and what is gone."""
    old, new = gap.b - gap.a, gap.d - gap.c
    if old == new:
        pairs = [(at, at) for at in range(old)]
    elif old * new <= _PAIRED:
        pairs = _alike(before[gap.a : gap.b], after[gap.c : gap.d])
    else:
        pairs = []
    a, c = gap.a, gap.c
    for mine, its in [*((gap.a + one, gap.c + two) for one, two in pairs), (gap.b, gap.d)]:
        yield from (_Change(at, at + 1, c, c) for at in range(a, mine))
        yield from (_Change(mine, mine, at, at + 1) for at in range(c, its))
        if mine < gap.b and its < gap.d:
            yield _Change(mine, mine + 1, its, its + 1)
        a, c = mine + 1, its + 1


def _alike(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """The pairs of lines, in order, that have the most words in common: the longest common subsequence, weighed."""
    words = [[frozenset(it for it in _TOKEN.findall(line) if it.strip()) for line in side] for side in (old, new)]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for at in range(len(old) - 1, -1, -1):
        for to in range(len(new) - 1, -1, -1):
            pair = _share(words[0][at], words[1][to]) + best[at + 1][to + 1]
            best[at][to] = max(pair, best[at + 1][to], best[at][to + 1])
    pairs, at, to = [], 0, 0
    while at < len(old) and to < len(new):
        if best[at][to] == best[at + 1][to]:
            at += 1
        elif best[at][to] == best[at][to + 1]:
            to += 1
        else:
            pairs.append((at, to))
            at, to = at + 1, to + 1
    return pairs


def _share(one: frozenset[bytes], two: frozenset[bytes]) -> float:
    """Nothing for lines that have hardly anything in common: they are no versions of each other."""
    share = len(one & two) / max(1, len(one | two))
    return share if share >= _ALIKE else 0.0


def _tokens_of(
    change: _Change, before: Sequence[bytes], after: Sequence[bytes], effort: Effort
) -> Iterator[tuple[int, int, bytes]]:
    """Where, counted from the first of the old lines, and what is put there."""
    old, new = b"".join(before[change.a : change.b]), b"".join(after[change.c : change.d])
    whole = (0, len(old), new)
    if (change.b - change.a, change.d - change.c) != (1, 1):
        yield whole
        return
    mine, its = _TOKEN.findall(old), _TOKEN.findall(new)
    gaps = [half for gap in _gaps(common_runs(mine, its, effort)) for half in _halves(gap)]
    if len(gaps) <= 1 or sum(gap.b - gap.a + gap.d - gap.c for gap in gaps) > _TOKENS:
        yield whole
        return
    starts = _starts(mine)
    for gap in gaps:
        yield starts[gap.a], starts[gap.b], b"".join(its[gap.c : gap.d])


def _halves(gap: _Change) -> Iterator[_Change]:
    """Tokens that others stand for now, and those that were added behind them: `2` that became `3 + 1` is two edits."""
    middle = gap.c + gap.b - gap.a
    if gap.a < gap.b and middle < gap.d:
        yield _Change(gap.a, gap.b, gap.c, middle)
        gap = _Change(gap.b, gap.b, middle, gap.d)
    yield gap


class _Scopes:
    """The statements around each line of a Python text; nothing where it is another language, or does not parse."""

    def __init__(self, text: bytes, *, python: bool) -> None:
        module = parse_python(text) if python else None
        self._side = "" if module is None else f"{len(text)}:"
        self._around: dict[int, list[int]] = {}  # by line: the first lines of the statements around it, outermost first
        for node in _statements(module) if module else ():
            first = min([node.lineno, *(it.lineno for it in getattr(node, "decorator_list", ()))])
            for line in range(first, (node.end_lineno or first) + 1):
                self._around.setdefault(line - 1, []).append(first - 1)

    def statement(self, line: int) -> str:
        """The innermost one."""
        return f"{self._side}{self._around.get(line, [line])[-1]}"

    def block(self, line: int, touched: set[int]) -> str:
        """The outermost one that begins with a changed line: what is inside it came with it."""
        around = self._around.get(line, [line])
        return f"{self._side}{next((first for first in around if first in touched), around[-1])}"


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """Outer ones before those that they hold. Without recursion: a candidate may nest as deep as the parser goes."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.expr):
            waiting += reversed(list(ast.iter_child_nodes(node)))
