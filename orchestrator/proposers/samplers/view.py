"""The part of a long history that a model looks at, so that a proposal costs the same however long it is.

Everything up to a limit. Beyond it: the best, the last, and a sample of all others that does not change as more are
added. It is made by folding the attempts in their order, so a resume sees the same.
"""

import hashlib
import heapq
from bisect import insort
from collections import deque
from collections.abc import Callable

from orchestrator.proposers.samplers.engine import Known, dominates


class View:
    def __init__(self, limit: int, best: int, last: int, values: Callable[[Known], tuple[float, ...] | None]) -> None:
        """`values` are what is to be made large; None for an attempt that failed."""
        self._limit, self._most, self._last = limit, best, last
        self._values = values
        self._told = 0
        self._recent: deque[Known] = deque(maxlen=limit)
        self._best: list[tuple[tuple[float, ...], int, Known]] = []
        self._sample: list[tuple[int, int, Known]] = []
        self.scored = 0

    def add(self, known: Known) -> None:
        self._told += 1
        self._recent.append(known)
        # A heap with the largest number on top, which is the first to go.
        heapq.heappush(self._sample, (-_number(known.place), known.place, known))
        if len(self._sample) > self._limit:
            heapq.heappop(self._sample)
        values = self._values(known)
        if values is not None:
            self.scored += 1
            insort(self._best, (tuple(-value for value in values), known.place, known))
            self._trim(len(values))

    def chosen(self) -> list[Known]:
        """In the order in which they ended."""
        if self._told <= self._limit:
            return list(self._recent)
        picked = {known.place: known for _, _, known in self._best}
        picked |= {known.place: known for known in list(self._recent)[-self._last :]}
        for _, place, known in sorted(self._sample, reverse=True):
            if len(picked) >= self._limit:
                break
            picked[place] = known
        return [picked[place] for place in sorted(picked)]

    def _trim(self, objectives: int) -> None:
        """With one objective the best stand first. With several, those that the fewest dominate stay, now and then."""
        if objectives == 1:
            del self._best[self._most :]
        elif len(self._best) >= 2 * self._most:
            # Their signs are turned, so that the best stand first: what is smaller everywhere dominates.
            beaten = [sum(dominates(it[0], other[0]) for other in self._best) for it in self._best]
            kept = sorted(range(len(self._best)), key=lambda at: (beaten[at], self._best[at][1]))[: self._most]
            self._best = [self._best[at] for at in sorted(kept)]


def _number(place: int) -> int:
    return int.from_bytes(hashlib.blake2b(str(place).encode(), digest_size=8).digest())
