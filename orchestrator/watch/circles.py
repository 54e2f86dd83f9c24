"""Going in circles: the same call with the same result again and again, or a short cycle of such steps."""

from collections import deque
from typing import NamedTuple

_CYCLES = (1, 2, 3)
_UNANSWERED = 64

Step = tuple[str, str]


class Circle(NamedTuple):
    """So many steps in a row repeat a cycle of this length; `since` is when it began to repeat."""

    length: int
    repeats: int
    since: int


class Circles:
    """One step must be there the given number of times in a row. Of a cycle of two or three, as many steps in a row
    must repeat, and more than one whole cycle: two agents side by side that look twice at the same thing are none.

    Answers belong to the calls in the order of both. Remembers three steps, however long the stream is.
    """

    def __init__(self, repeats: int) -> None:
        self._needed = {1: repeats - 1} | {length: max(repeats - 1, length + 1) for length in _CYCLES[1:]}
        self._called: deque[str] = deque(maxlen=_UNANSWERED)
        self._steps: deque[Step] = deque(maxlen=max(_CYCLES))
        self._equal = dict.fromkeys(_CYCLES, 0)
        self._since = dict.fromkeys(_CYCLES, 0)

    def called(self, digest: str) -> None:
        self._called.append(digest)

    def answered(self, digest: str, at: int) -> Circle | None:
        """Once it was gone through often enough."""
        step = (self._called.popleft() if self._called else "", digest)
        found = None
        for length in _CYCLES:
            same = len(self._steps) >= length and self._steps[-length] == step
            if same and not self._equal[length]:
                self._since[length] = at
            self._equal[length] = self._equal[length] + 1 if same else 0
            if found is None and self._equal[length] >= self._needed[length]:
                found = Circle(length, self._needed[length], self._since[length])
        self._steps.append(step)
        return found
