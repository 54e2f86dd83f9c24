"""What a run of the root told of a file, carried over to the file as it is now. A hint: it never rules a place out."""

from collections.abc import Sequence
from functools import cached_property

from orchestrator.change import Refusal
from orchestrator.change.comparison import common_runs
from orchestrator.change.effort import Effort
from orchestrator.domain.profile import FileProfile
from orchestrator.proposers.operators.edit import line_of

# The chance that a place which no run reached is tried all the same.
UNREACHED = 0.05
# From this share of the time on, a place is hot.
HOT = 1 / 8


class Ground:
    """`profile` is that of the file at the root, None where no run loaded it; `before` is the file there."""

    def __init__(self, profile: FileProfile | None, before: bytes, now: bytes) -> None:
        self._profile = profile
        self._before, self._now = before, now

    def chance(self, changed: bytes) -> float:
        """That the file is changed to this one: less where nothing that runs would change."""
        if self._profile is None:
            return UNREACHED
        first, last = _changed_lines(self._now, changed)
        old = self._old(first, last) or self._around(first, last)
        return UNREACHED if old and self._profile.reaches(*old) is False else 1.0

    def heat(self, start: int, end: int) -> float:
        """The share of the time between two bytes; nothing where that is not much. In steps of a factor of two: most of
        what two clocks measure differently is the same then, and what is near an edge is not.
        """
        old = self._old(line_of(self._now, start), line_of(self._now, max(start, end - 1)))
        share = self._profile.share(*old) if self._profile and old else 0.0
        return 0.0 if share < HOT else 1.0 if share >= 1 / 2 else 0.5 if share >= 1 / 4 else 0.25

    @property
    def is_loaded(self) -> bool:
        return self._profile is not None

    @property
    def is_hot(self) -> bool:
        return bool(self._profile and self._profile.share(1, len(self._lines(self._before))) >= HOT)

    def _old(self, first: int, last: int) -> tuple[int, int] | None:
        """Those of these lines that were there before, from the first to the last."""
        lines = [self._places[line] for line in range(first, last + 1) if line in self._places]
        return (min(lines), max(lines)) if lines else None

    def _around(self, first: int, last: int) -> tuple[int, int] | None:
        """Of lines that are all new, those between which they stand: what is amid lines that no run reached is not
        reached either.
        """
        above = next((self._places[line] for line in range(first - 1, 0, -1) if line in self._places), None)
        lines = len(self._lines(self._now))
        below = next((self._places[line] for line in range(last + 1, lines + 1) if line in self._places), None)
        return (above, below) if above is not None and below is not None else None

    @cached_property
    def _places(self) -> dict[int, int]:
        """By its number now, the number that a line had."""
        old, new = self._lines(self._before), self._lines(self._now)
        try:
            runs = common_runs(old, new, Effort())
        except Refusal:  # it would take too long to tell
            return {}
        return {run.new + at + 1: run.old + at + 1 for run in runs for at in range(run.length)}

    @staticmethod
    def _lines(data: bytes) -> Sequence[bytes]:
        return data.split(b"\n")


def _changed_lines(now: bytes, changed: bytes) -> tuple[int, int]:
    """The lines of a file that another one does not share at its beginning or its end; where only new ones come in, the
    line before them.
    """
    old, new = now.split(b"\n"), changed.split(b"\n")
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    first, last = head + 1, len(old) - tail
    return (first, last) if first <= last else (max(1, last), max(1, last))
