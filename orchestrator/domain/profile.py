"""What one more run of the baseline told of its own code: the lines that it reached, and where the time went.

It comes out of a chamber, so it proves nothing. It is a hint for those who choose where to change something.
"""

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from pydantic import BaseModel, Field

Ranges = tuple[tuple[int, int], ...]

# With fewer looks at what runs, nobody knows where the time goes.
LEAST_SAMPLES = 20


class FileProfile(BaseModel, extra="forbid", frozen=True):
    """Lines count from 1, and ranges have both their ends. `never` are lines with code that was not reached; of all
    that is in neither, nothing is known. `heat` has the thousandths of the time during which a line was at work, itself
    or by what it called.
    """

    reached: Ranges = ()
    never: Ranges = ()
    heat: dict[int, int] = Field(default_factory=dict)

    def reaches(self, first: int, last: int) -> bool | None:
        """Whether anything there runs; None where that is not known. A line without code belongs to what is above."""
        told = [self._kind(line) for line in range(first, last + 1)]
        found = [kind for kind in told if kind is not None]
        if not found:
            at = max(
                (line for line in (*self._starts(self.reached, first), *self._starts(self.never, first))), default=0
            )
            found = [kind for kind in (self._kind(at),) if kind is not None]
        return any(found) if found else None

    def share(self, first: int, last: int) -> float:
        """How much of the time these lines were at work. Each function counts where its innermost call is, so lines
        of one function add up.
        """
        return min(1.0, sum(part for line, part in self.heat.items() if first <= line <= last) / 1000)

    def _kind(self, line: int) -> bool | None:
        if _has(self._reached_from, self.reached, line):
            return True
        return False if _has(self._never_from, self.never, line) else None

    @cached_property
    def _reached_from(self) -> list[int]:
        return [first for first, _ in self.reached]

    @cached_property
    def _never_from(self) -> list[int]:
        return [first for first, _ in self.never]

    @staticmethod
    def _starts(ranges: Ranges, before: int) -> Iterable[int]:
        return (last for _, last in ranges if last < before)


class Profile(BaseModel, extra="forbid", frozen=True):
    """By files of the workspace. `samples` is how many looks the heat is from. `cut`: not all was told, so that of a
    file which it does not have nothing is known; else no run loaded that.
    """

    samples: int = 0
    files: dict[str, FileProfile] = Field(default_factory=dict)
    cut: bool = False

    def tells_of(self, path: str) -> bool:
        """Whether anything is known of a file, be it that no run loaded it."""
        return path in self.files or (bool(self.files) and not self.cut)

    @property
    def is_timed(self) -> bool:
        return self.samples >= LEAST_SAMPLES


def _has(starts: list[int], ranges: Ranges, line: int) -> bool:
    at = bisect_right(starts, line) - 1
    return at >= 0 and line <= ranges[at][1]
