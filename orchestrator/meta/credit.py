"""What an attempt was worth to those choices that made it.

A reward is free of the task's scale: a gain counts by its rank among the last ones. An advantage is the reward less
what was expected of a child of that parent, at what it cost. A fold over attempts in the order in which they ended.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, sqrt
from typing import Protocol

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Drawn
from orchestrator.meta.tuning import USUAL, Tuning


class Result(Protocol):
    """What there is to know of an attempt that ended and was charged. `certified` merits are those of repeats, None
    where there are none; `screened`: its merits come from one run of a noisy task.
    """

    @property
    def node(self) -> str: ...
    @property
    def parent(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def merits(self) -> tuple[float, ...] | None: ...
    @property
    def parent_merits(self) -> tuple[float, ...] | None: ...
    @property
    def ending(self) -> Ending | None: ...
    @property
    def drawn(self) -> Drawn | None: ...
    @property
    def certified(self) -> tuple[float, ...] | None: ...
    @property
    def parent_certified(self) -> tuple[float, ...] | None: ...
    @property
    def screened(self) -> bool: ...
    @property
    def usd(self) -> float: ...
    @property
    def seconds(self) -> float: ...


class Price(StrEnum):
    """What a gain is set against."""

    NONE = "none"
    USD = "usd"
    SECONDS = "seconds"


class Crediting(StrEnum):
    LIFT = "lift"
    LINEAGE = "lineage"


class Came(StrEnum):
    """What came of an attempt, beside what it was built on."""

    BROKEN = "broken"
    INVALID = "invalid"
    CHEAT = "cheat"
    PRUNED = "pruned"
    SAME = "same"
    WORSE = "worse"
    BETTER = "better"


_WITHOUT_SCORE: Mapping[Ending | None, Came] = {
    Ending.INVALID: Came.INVALID,
    Ending.TAMPERED: Came.CHEAT,
    Ending.PRUNED: Came.PRUNED,
}


def outcome(result: Result) -> tuple[Came, float]:
    """With how much better, in the first metric that differs. Values of repeats are compared where they are there."""
    merits = result.certified or result.merits
    if merits is None:
        return _WITHOUT_SCORE.get(result.ending, Came.BROKEN), 0.0
    parent = (result.parent_certified if result.certified else None) or result.parent_merits
    pairs = zip(merits, parent or (), strict=False)
    gain = next((mine - its for mine, its in pairs if mine != its), 0.0)
    if not isfinite(gain) or gain == 0.0:
        return Came.SAME, 0.0
    return (Came.BETTER, gain) if gain > 0 else (Came.WORSE, 0.0)


@dataclass(frozen=True)
class Earned:
    """`advantage` is in units of what is usual; `weight` says how sure the value is. `own`: of the attempt itself, not
    of a descendant's gain. `cost` is what the attempt cost; 1 where no price is asked.
    """

    drawn: Drawn
    advantage: float
    weight: float
    own: bool
    cost: float = 1.0


@dataclass(slots=True)
class _Mean:
    weight: float = 0.0
    total: float = 0.0

    def add(self, value: float, fading: float) -> None:
        self.weight = self.weight * fading + 1.0
        self.total = self.total * fading + value

    def shrunk(self, towards: float, trust: float) -> float:
        return (trust * towards + self.total) / (trust + self.weight)


class Credit:
    """Says what each attempt earned, and to whom."""

    def __init__(self, kind: Crediting, price: Price = Price.NONE, tuning: Tuning = USUAL) -> None:
        self._kind = kind
        self._price = price
        self._tuning = tuning
        self._gains: deque[float] = deque(maxlen=tuning.ranks)
        self._paid = _Mean()
        self._costs = _Mean()
        self._squares = _Mean()
        self._children: dict[str, _Mean] = {}
        self._made: dict[str, tuple[Drawn | None, str]] = {}

    def earned(self, result: Result) -> Iterator[Earned]:
        """The attempt's own, and with lineage that of its ancestors, nearest first."""
        tuning = self._tuning
        came, gain = outcome(result)
        reward = self._reward(came, gain)
        weight = tuning.screened if result.screened and result.certified is None else 1.0
        paid = self._cost(result)
        cost = self._relative_cost(paid)
        # What a gain brings to its ancestors is expected as well: else an arm would earn by being built on at all.
        shares = list(self._shares(result.parent, reward)) if came is Came.BETTER else []
        expected = self._expected(result.parent) * cost
        advantage = self._scaled(reward - expected)
        self._count(result, reward, reward + sum(share for _, share in shares))
        if result.drawn:
            yield Earned(result.drawn, advantage, weight, own=True, cost=paid)
        for drawn, share in shares:
            yield Earned(drawn, self._scaled(share), weight, own=False)

    def _reward(self, came: Came, gain: float) -> float:
        if came is not Came.BETTER:
            reward: float = getattr(self._tuning, came)
            return reward
        ordered = sorted(self._gains)
        below = (bisect_left(ordered, gain) + bisect_right(ordered, gain)) / 2
        rank = (below + 0.5) / (len(ordered) + 1)
        self._gains.append(gain)
        return self._tuning.better + (1.0 - self._tuning.better) * rank

    def _cost(self, result: Result) -> float:
        if self._price is Price.NONE:
            return 1.0
        return result.usd if self._price is Price.USD else result.seconds

    def _relative_cost(self, cost: float) -> float:
        """1 for what costs as much as usual; for all, where a price is asked that nobody pays."""
        self._costs.add(cost, self._tuning.fading)
        mean = self._costs.total / self._costs.weight
        return cost / mean if mean > 0 else 1.0

    def _expected(self, parent: str) -> float:
        """Of one more child: what its siblings brought, shrunk towards what all bring."""
        overall = self._paid.shrunk(0.15, 1.0)
        children = self._children.get(parent)
        return children.shrunk(overall, self._tuning.parent_trust) if children else overall

    def _scaled(self, advantage: float) -> float:
        usual = sqrt(self._squares.shrunk(0.04, 2.0))
        return max(-self._tuning.most, min(self._tuning.most, advantage / usual))

    def _count(self, result: Result, reward: float, paid: float) -> None:
        tuning = self._tuning
        overall = self._paid.shrunk(0.15, 1.0)
        self._squares.add((reward - overall) ** 2, tuning.fading)
        self._paid.add(paid, tuning.fading)
        self._children.setdefault(result.parent, _Mean()).add(reward, tuning.fading)
        if self._kind is Crediting.LINEAGE:
            self._made[result.node] = (result.drawn, result.parent)

    def _shares(self, parent: str, reward: float) -> Iterator[tuple[Drawn, float]]:
        share = reward
        for _ in range(self._tuning.generations):
            if parent not in self._made:
                return
            drawn, parent = self._made[parent]
            share *= self._tuning.inherited
            if drawn:
                yield drawn, share
