"""What the past teaches of places: which files and functions were worth it, how large a step should be, who did well.
Which operators were is known to the chooser.

A fold over what has ended, in order, and a function of nothing else: a resumed campaign goes on as it would have.
"""

from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.meta.credit import Came, outcome
from orchestrator.meta.lately import Rewards, Tally
from orchestrator.proposers.base import Tried
from orchestrator.proposers.operators.edit import Told, read_description
from orchestrator.proposers.operators.numbers import FIRST_STEP, LEAST_STEP, MOST_STEP, is_real

_GROW = 1.5
_SHRINK = _GROW**-0.25  # with one success in five, a step stays as it is
_BEST, _RECENT = 6, 6
_DULL, _TRIED = 0.4, 0.92
# How often a change leaves the score as it is even where it could matter, and how much of a try counts before it ends.
_SAME_ANYWAY, _UNDER_WAY, _LEAST_HOPE = 0.35, 0.5, 0.05
_STEPS = {"numbers": "several", "line numbers": "several", "factor": "factor"}
_SINGLE = ("constant", "line number")
_ONWARD = ("onward", "line onward")
FIRST_FACTOR = 1.2


@dataclass(frozen=True, order=True)
class Known:
    """A node that was better than what it was built on."""

    merits: tuple[float, ...]
    node: str
    parent: str


class Memory:
    _seen: int
    _last: Tried | None

    def __init__(self) -> None:
        self._forget()

    def learn(self, ended: Sequence[Tried]) -> None:
        """What is new since the last time; all of it where this is another past."""
        if self._seen > len(ended) or (self._seen and ended[self._seen - 1] != self._last):
            self._forget()
        for at in range(self._seen, len(ended)):
            self._add(ended[at])
        self._seen = len(ended)
        self._last = ended[-1] if ended else None

    def of_file(self, path: str) -> float:
        tally = self._tallies.get(("file", path))
        return tally.quality if tally else 1.0

    def of_owner(self, path: str, owner: str) -> float:
        tally = self._tallies.get(("owner", path, owner))
        return min(4.0, tally.quality * tally.life) if tally else 1.0

    def hope(self, path: str, owner: str, under_way: int = 0) -> float:
        """The chance that a change there makes any difference: 1 where one did, never nothing. Of `under_way` nothing
        is known yet.
        """
        tally = self._tallies.get(("owner", path, owner))
        if tally and tally.matters:
            return 1.0
        odds: float = _SAME_ANYWAY ** ((tally.tried if tally else 0) + _UNDER_WAY * under_way)
        return max(_LEAST_HOPE, odds / (1.0 + odds))

    def step(self, path: str, kind: str) -> float:
        return self._steps.get((path, kind), FIRST_FACTOR if kind == "factor" else FIRST_STEP)

    def dull(self, path: str, owner: str, number: str) -> float:
        return max(0.05, self._numbers.get((path, owner, number), 1.0))

    def improving_parent(self, node: str) -> str | None:
        """What the node was built on, if it was better than that."""
        return self._improved.get(node)

    def went_on(self, node: str) -> int:
        """How often its own step was taken once more, to no avail."""
        return self._went_on.get(node, 0)

    def donors(self, without: str) -> list[Known]:
        """Nodes to take from: the best, and the last that were an improvement at their place."""
        every = dict.fromkeys([*reversed(self._best), *self._recent])
        return [known for known in every if known.node != without]

    def _forget(self) -> None:
        self._seen = 0
        self._last = None
        self._tallies: dict[tuple[str, ...], Tally] = {}
        self._steps: dict[tuple[str, str], float] = {}
        self._numbers: dict[tuple[str, str, str], float] = {}
        self._improved: dict[str, str] = {}
        self._best: list[Known] = []
        self._recent: deque[Known] = deque(maxlen=_RECENT)
        self._rewards = Rewards()
        self._went_on: dict[str, int] = {}

    def _add(self, tried: Tried) -> None:
        came, gain = outcome(tried)
        if tried.params is None:  # a point of the parameters tells nothing of operators
            told = read_description(tried.description)
            reward = self._rewards.of(came, gain)
            matters = came is not Came.SAME or tried.parent_merits is None
            for key in (("file", told.path), ("owner", told.path, told.owner)):
                self._tallies.setdefault(key, Tally()).add(reward, came, matters=matters)
            self._adapt(tried.operator, told, came)
            if tried.operator in _ONWARD and came is not Came.BETTER:
                self._went_on[tried.parent] = self.went_on(tried.parent) + 1
        if came is Came.BETTER and tried.merits is not None:
            self._improved[tried.node] = tried.parent
            known = Known(tried.merits, tried.node, tried.parent)
            insort(self._best, known)
            del self._best[:-_BEST]
            self._recent.append(known)

    def _adapt(self, operator: str, told: Told, came: Came) -> None:
        kind = _STEPS.get(operator)
        if operator in _SINGLE and told.old:
            kind = "real" if is_real(told.old) else "whole"
            spot = (told.path, told.owner, told.old)
            known = self._numbers.get(spot, 1.0)
            self._numbers[spot] = known * (_DULL if came is Came.SAME else _TRIED)
        if kind is None or came is Came.SAME:
            return
        size = self.step(told.path, kind) * (_GROW if came is Came.BETTER else _SHRINK)
        self._steps[told.path, kind] = min(MOST_STEP, max(LEAST_STEP, size))
