"""Which lines two files share: Myers' shortest edit script, within a budget.

The files are an agent's, and so is the effort that comparing them takes. When the budget is used up, what lies between
the common beginning and the common end counts as replaced as a whole: longer to read, and just as right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.change.effort import Effort


@dataclass(frozen=True, slots=True)
class Run:
    """`length` lines that are the same from `old` on in one file and from `new` on in the other."""

    old: int
    new: int
    length: int


def common_runs(old: Sequence[bytes], new: Sequence[bytes], effort: Effort | None = None) -> list[Run]:
    """Runs in order; the first starts where both files do, the last ends where both do, and either may be empty."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    middle = _shared(old[head : len(old) - tail], new[head : len(new) - tail], effort or Effort())
    runs = [Run(0, 0, head), *(Run(run.old + head, run.new + head, run.length) for run in middle)]
    return _merged([*runs, Run(len(old) - tail, len(new) - tail, tail)])


def _merged(runs: Sequence[Run]) -> list[Run]:
    merged = [runs[0]]
    for run in runs[1:]:
        last = merged[-1]
        if (last.old + last.length, last.new + last.length) == (run.old, run.new):
            merged[-1] = Run(last.old, last.new, last.length + run.length)
        else:
            merged.append(run)
    return merged


def _numbered(numbers: dict[bytes, int], lines: Sequence[bytes]) -> list[int]:
    """Equal lines under one number: to compare two of them costs the same however long they are."""
    return [numbers.setdefault(line, len(numbers)) for line in lines]


def _shared(old_lines: Sequence[bytes], new_lines: Sequence[bytes], effort: Effort) -> list[Run]:
    """The furthest reach on every diagonal, one edit more at a time, until one reaches the end of both."""
    steps, used = effort.steps_left, 0
    if not old_lines or not new_lines or steps <= 0:
        return []
    numbers: dict[bytes, int] = {}
    old, new = _numbered(numbers, old_lines), _numbered(numbers, new_lines)
    reach = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(len(old) + len(new) + 1):
        trail.append(dict(reach))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            start = x
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            used += 1 + x - start
            if x >= len(old) and x - diagonal >= len(new):
                effort.compared(used)
                return _walked_back(trail, len(old), len(new))
            if used > steps:
                effort.compared(used)
                return []
        effort.check_time()
    return []


def _walked_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[Run]:
    runs: list[Run] = []
    for edits in range(len(trail) - 1, -1, -1):
        reach, diagonal = trail[edits], x - y
        down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
        before = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
        if x > before:
            runs.append(Run(before, before - diagonal, x - before))
        x = before if down else before - 1
        y = x - (diagonal + 1 if down else diagonal - 1)
    return runs[::-1]
