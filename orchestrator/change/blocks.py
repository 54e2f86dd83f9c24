"""Read search/replace blocks: the file's path on a line of its own, then the old lines and the new ones.

All blocks of a change are compared with the file as it was before; the order among them has no meaning.
"""

from collections.abc import Sequence

from orchestrator.change.edits import Edit, Hunk, Kind, Line, Sign
from orchestrator.change.labels import fence, path_in_info, path_line
from orchestrator.change.refusal import Reason, Refusal

SEARCH, DIVIDER, REPLACE = b"<<<<<<< SEARCH", b"=======", b">>>>>>> REPLACE"


def parse_blocks(lines: Sequence[bytes], hunk_cap: int, only: str | None) -> tuple[Edit, ...]:
    hunks: dict[str, list[Hunk]] = {}
    label: str | None = None
    at, count = 0, 0
    while at < len(lines):
        line = lines[at].rstrip()
        if line == SEARCH:
            path = label or only
            if path is None:
                raise Refusal(Reason.NO_PATH, f"line {at + 1}: a block without a path above it")
            count += 1
            if count > hunk_cap:
                raise Refusal(Reason.TOO_MANY_HUNKS, f"line {at + 1}")
            hunk, at = _read_block(lines, at)
            hunks.setdefault(path, []).append(hunk)
            label = path  # a second block right below is about the same file
            continue
        if line in (DIVIDER, REPLACE):
            raise Refusal(Reason.MALFORMED, f"line {at + 1}: a marker outside a block")
        label = _next_label(line, label)
        at += 1
    return tuple(Edit(Kind.MODIFY, path, hunks=tuple(found)) for path, found in hunks.items())


def _next_label(line: bytes, label: str | None) -> str | None:
    if not line:
        return label
    mark = fence(line)
    if mark is not None:
        return path_in_info(mark.info) or label
    return path_line(line)


def _read_block(lines: Sequence[bytes], start: int) -> tuple[Hunk, int]:
    dividers: list[int] = []
    for at in range(start + 1, len(lines)):
        line = lines[at].rstrip()
        if line == SEARCH:
            break
        if line == DIVIDER:
            dividers.append(at)
        if line == REPLACE:
            if len(dividers) != 1:
                reason = Reason.AMBIGUOUS if dividers else Reason.MALFORMED
                raise Refusal(reason, f"line {start + 1}: a block with {len(dividers)} dividers")
            return _hunk(lines[start + 1 : dividers[0]], lines[dividers[0] + 1 : at]), at + 1
    raise Refusal(Reason.MALFORMED, f"line {start + 1}: a block without its end")


def _hunk(old: Sequence[bytes], new: Sequence[bytes]) -> Hunk:
    """Equal lines at both ends are context: the file keeps its own, trailing blanks and all."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    lines = [Line(Sign.KEPT, text) for text in old[:head]]
    lines += [Line(Sign.GONE, text) for text in old[head : len(old) - tail]]
    lines += [Line(Sign.NEW, text) for text in new[head : len(new) - tail]]
    lines += [Line(Sign.KEPT, text) for text in old[len(old) - tail :]]
    return Hunk(tuple(lines))
