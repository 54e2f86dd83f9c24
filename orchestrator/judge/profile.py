"""The profile of a run as its chamber told it: bytes of its own, read strictly, or left out."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, StrictBool, ValidationError

from orchestrator.bounded_json import JsonRefused, loads
from orchestrator.change import Tree
from orchestrator.domain.profile import FileProfile, Profile, Ranges

# Where a process leaves what it saw, beneath the outputs; one file each.
FOLDER = ".blastdoor-profile"
MOST_BYTES = 1 << 20
_PROCESSES = 32
_LINES = 20_000
_DAY_MS = 86_400_000 * 7

_Line = Annotated[int, Field(ge=1, le=10_000_000)]


def _in_order(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Each after the one before: so they have no more lines together than the last of them."""
    ends = [end for it in ranges for end in it]
    if ends != sorted(ends) or any(one[1] >= other[0] for one, other in pairwise(ranges)):
        raise ValueError("ranges out of order")
    return ranges


_Ranges = Annotated[list[tuple[_Line, _Line]], Field(max_length=_LINES), AfterValidator(_in_order)]


class _File(BaseModel, extra="forbid"):
    reached: _Ranges
    unknown: _Ranges
    never: _Ranges
    heat: Annotated[list[tuple[_Line, Annotated[int, Field(ge=0, le=_DAY_MS)]]], Field(max_length=_LINES)]


class _Told(BaseModel, extra="forbid"):
    profile: Literal[1]
    samples: Annotated[int, Field(ge=0, le=2**40)]
    ms: Annotated[int, Field(ge=0, le=_DAY_MS)]
    cut: StrictBool = False
    files: Annotated[dict[str, _File], Field(max_length=64)]


def read_profile(told: Iterable[bytes], tree: Tree, *, ended: bool = False) -> Profile:
    """Of all processes together, for the files of the tree. What cannot be read is left out. Never raises.

    `ended`: the run did not come to its own end. Where something was not told, nothing is called unreached that may
    have been reached there.
    """
    told = list(told)
    read = [found for data in told[:_PROCESSES] if (found := _read(data)) is not None]
    total, partial = sum(it.ms for it in read), ended or len(told) > _PROCESSES
    files = {}
    for path, file in tree.items():
        mine = [it.files[path] for it in read if path in it.files]
        if mine:
            merged = _merged(mine, total, file.data.count(b"\n") + 1)
            untold = partial or any(it.cut and path not in it.files for it in read)
            files[path] = merged.model_copy(update={"never": ()}) if untold else merged
    cut = partial or any(it.cut for it in read)
    return Profile(samples=sum(it.samples for it in read), files=files, cut=cut)


def _read(data: bytes) -> _Told | None:
    try:
        return _Told.model_validate(loads(data, max_bytes=MOST_BYTES, max_depth=8, max_digits=20))
    except (JsonRefused, ValidationError):
        return None


def _merged(told: list[_File], total_ms: int, lines: int) -> FileProfile:
    reached = _lines((it.reached for it in told), lines)
    unknown = _lines((it.unknown for it in told), lines)
    never = _lines((it.never for it in told), lines) - reached - unknown
    heat: dict[int, int] = {}
    for it in told:
        for line, ms in it.heat:
            if line <= lines:
                heat[line] = heat.get(line, 0) + ms
    shares = {line: min(1000, round(1000 * ms / total_ms)) for line, ms in sorted(heat.items())} if total_ms else {}
    return FileProfile(
        reached=_ranges(reached), never=_ranges(never), heat={line: part for line, part in shares.items() if part}
    )


def _lines(told: Iterable[_Ranges], most: int) -> set[int]:
    """No more than the file has."""
    return {line for ranges in told for first, last in ranges for line in range(first, min(last, most) + 1)}


def _ranges(lines: set[int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for line in sorted(lines):
        if found and found[-1][1] == line - 1:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    return tuple(found)
