"""What `git apply` makes of a file: by the new line numbers, the nearest place first, one hunk after the other.

A person may read a diff here and apply it with git, so what we make of it is compared with that.
"""

from collections.abc import Sequence

from orchestrator.change.edits import Hunk, Sign
from orchestrator.change.effort import Effort
from orchestrator.change.refusal import Reason, Refusal

_STEP = 4  # to look at a place costs as much as some lines


def made_by_git(data: bytes, hunks: Sequence[Hunk], effort: Effort) -> bytes | None:
    """The file after hunks that say all their numbers; None where git finds no place for one of them."""
    file = _lines(data)
    patched = [False] * len(file)
    for hunk in hunks:
        old, new = (_side(hunk, without) for without in (Sign.NEW, Sign.GONE))
        place = _place(file, patched, hunk, old, effort)
        if place is None:
            return None
        file[place : place + len(old)] = new
        patched[place : place + len(old)] = [True] * len(new)
    return b"".join(file)


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _side(hunk: Hunk, without: Sign) -> list[bytes]:
    lines = [line.text + b"\n" for line in hunk.lines if line.sign is not without]
    if lines and (hunk.old_open if without is Sign.NEW else hunk.new_open):
        lines[-1] = lines[-1][:-1]
    return lines


def _place(
    file: Sequence[bytes], patched: Sequence[bool], hunk: Hunk, old: Sequence[bytes], effort: Effort
) -> int | None:
    last = len(file) - len(old)
    at_start, at_end = hunk.numbers[0] <= 1, hunk.lines[-1].sign is not Sign.KEPT
    begin = 0 if at_start else last if at_end else min(max(hunk.numbers[1] - 1, 0), len(file))
    if last < 0 or (at_start and at_end and last):
        return None
    only_there = at_start or at_end
    for step in range(1 if only_there else 2 * len(file) + 2):
        at = begin + (step + 1) // 2 * (1 if step % 2 else -1)
        if not effort.sought(_STEP):
            raise Refusal(Reason.TOO_COSTLY, "to look for a hunk as git does takes too many steps")
        if not 0 <= at <= last or (old and file[at] != old[0]):
            continue
        effort.sought(len(old))
        if list(file[at : at + len(old)]) == old and not any(patched[at : at + len(old)]):
            return at
    return None
