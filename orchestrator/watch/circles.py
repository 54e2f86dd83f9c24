"""Going in circles: the same call with the same result again and again, or a short cycle of such steps."""

from collections import deque
from typing import NamedTuple

_CYCLES = (1, 2, 3)
_UNANSWERED = 64

Times = tuple[float, ...]
Step = tuple[str, str, Times]


class Circle(NamedTuple):
    """So many steps in a row repeat a cycle of this length; `since` is when it began to repeat."""

    length: int
    repeats: int
    since: int


class Circles:
    """One step must be there the given number of times in a row. Of a cycle of two or three, as many steps in a row
    must repeat, and more than one whole cycle: two agents side by side that look twice at the same thing are none.

    A result that differs in its times alone is the same, unless a time goes the same way in every repeat: then somebody
    waits for something that goes on.

    Answers belong to the calls in the order of both. Remembers three steps, however long the stream is.
    """

    def __init__(self, repeats: int) -> None:
        self._needed = {1: repeats - 1} | {length: max(repeats - 1, length + 1) for length in _CYCLES[1:]}
        self._called: deque[str] = deque(maxlen=_UNANSWERED)
        self._steps: deque[Step] = deque(maxlen=max(_CYCLES))
        self._equal = dict.fromkeys(_CYCLES, 0)
        self._since = dict.fromkeys(_CYCLES, 0)
        self._ways: dict[int, dict[int, tuple[int, ...]]] = {length: {} for length in _CYCLES}

    def called(self, digest: str) -> None:
        self._called.append(digest)

    def answered(self, digest: str, at: int) -> Circle | None:
        """Once it was gone through often enough."""
        digest, _, times = digest.partition(":")
        step = (self._called.popleft() if self._called else "", digest, _read(times))
        found = None
        for length in _CYCLES:
            same = len(self._steps) >= length and self._steps[-length][:2] == step[:2]
            if same and not self._equal[length]:
                self._since[length] = at
            self._note_ways(length, step[2], same=same)
            self._equal[length] = self._equal[length] + 1 if same else 0
            if found is None and self._equal[length] >= self._needed[length] and not self._goes_on(length):
                found = Circle(length, self._needed[length], self._since[length])
        self._steps.append(step)
        return found

    def _note_ways(self, length: int, times: Times, *, same: bool) -> None:
        """For each step of a cycle, which of its times went up (1) or down (-1) in every repeat so far."""
        if not same:
            self._ways[length].clear()
            return
        moved = tuple((now > then) - (now < then) for now, then in zip(times, self._steps[-length][2], strict=False))
        place = self._equal[length] % length
        before = self._ways[length].get(place, moved)
        self._ways[length][place] = tuple(now if now == then else 0 for now, then in zip(moved, before, strict=False))

    def _goes_on(self, length: int) -> bool:
        return any(any(ways) for ways in self._ways[length].values())


def _read(times: str) -> Times:
    """Recorded streams are read, too, and a file may hold anything."""
    try:
        return tuple(float(time) for time in times.split(",")) if times else ()
    except ValueError:
        return ()
