"""Which lines two files share: Myers' shortest edit script, within a budget.

The files are an agent's, and so is the effort that comparing them takes. When the budget is used up, what lies between
the common beginning and the common end counts as replaced as a whole: longer to read, and just as right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 400_000


@dataclass(frozen=True, slots=True)
class Run:
    """`length` lines that are the same from `old` on in one file and from `new` on in the other."""

    old: int
    new: int
    length: int


def common_runs(old: Sequence[bytes], new: Sequence[bytes], steps: int = STEPS) -> list[Run]:
    """Runs in order; the first starts where both files do, the last ends where both do, and either may be empty."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    middle = _shared(old[head : len(old) - tail], new[head : len(new) - tail], steps)
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


def _shared(old: Sequence[bytes], new: Sequence[bytes], steps: int) -> list[Run]:
    """The furthest reach on every diagonal, one edit more at a time, until one reaches the end of both."""
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
            steps -= 1 + x - start
            if x >= len(old) and x - diagonal >= len(new):
                return _walked_back(trail, len(old), len(new))
            if steps < 0:
                return []
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
