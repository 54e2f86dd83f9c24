"""Differential evolution: a population of points, each challenged by one that is made of the differences of others.

The attempt of number n challenges the member at n modulo the size of the population, and takes its place where it is no
worse. So the population follows from the attempts that ended, in their order, however many run at a time. A challenger
goes from its member towards one of the best, and by the difference of two more (DE/current-to-pbest/1/bin); how far and
in how many parameters is drawn again each time. When all members are one point, all but the best start again anywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.metric import Ranking
from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point
from orchestrator.proposers.samplers.box import Array, Box
from orchestrator.proposers.samplers.branches import Branches
from orchestrator.proposers.samplers.engine import Known, badness, dominates, objectives
from orchestrator.task import Parameter

FEWEST, MOST = 8, 40
DONORS = 4
PULL, CROSSED = (0.4, 0.9), (0.3, 1.0)  # from which the step's length and the share of parameters are drawn
BEST = 0.2
ANY = 0.05  # of a choice's changes: to any value, since one that no member has would be lost for ever
SETTLED = 1e-4
OFFERS = 64


@dataclass(frozen=True, eq=False)
class _Member:
    point: Mapping[str, Value]
    row: Array
    there: NDArray[np.bool_]
    values: tuple[float, ...] | None


class Evolution:
    def __init__(self, space: Mapping[str, Parameter], ranking: Ranking) -> None:
        self._space, self._ranking = space, ranking
        self._box = Box(space)
        self._branches = Branches(space)
        self._members: list[_Member | None] = [None] * min(MOST, max(FEWEST, 4 + len(space)))

    def tell(self, known: Known) -> None:
        self._branches.add(known.point)
        (row,) = self._box.rows([known.point])
        there = np.array([name in known.point for name in self._space])
        values = None if known.merits is None else objectives(self._ranking, known.merits)
        slot = known.number % len(self._members)
        old = self._members[slot]
        if old is None or not _is_better(old.values, values):
            self._members[slot] = _Member(known.point, row, there, values)
            self._restart_if_settled()

    def offers(self, running: Sequence[Point], seed: int, number: int) -> Iterator[Point]:
        """None for a place in the population that nobody has yet: it is drawn at random then."""
        member = self._members[number % len(self._members)]
        used_up = self._branches.used_up(running).branches
        there = [it for it in self._members if it is not None]
        left = [it for it in there if not used_up or self._branches.of(it.point) not in used_up]
        pool = left if len(left) >= DONORS else there
        if member is None or len(pool) < DONORS:
            return iter(())
        return self._challengers(member, pool, np.random.default_rng(seed))

    def _challengers(self, member: _Member, pool: Sequence[_Member], rng: np.random.Generator) -> Iterator[Point]:
        order = np.argsort(badness([it.values for it in pool]), kind="stable")
        best = order[: max(2, round(BEST * len(pool)))]
        for _ in range(OFFERS):
            ahead = pool[rng.choice(best)]
            one, other = (pool[at] for at in rng.choice(len(pool), size=2, replace=False))
            yield self._box.point(self._crossed(member, ahead, one, other, rng))

    def _crossed(
        self, member: _Member, ahead: _Member, one: _Member, other: _Member, rng: np.random.Generator
    ) -> Array:
        """What a donor does not have brings no difference; what the member does not have is drawn, or is the best's."""
        pull, share = rng.uniform(*PULL), rng.uniform(*CROSSED)
        (drawn,) = self._box.drawn(1, rng)
        base = np.where(member.there, member.row, np.where(ahead.there, ahead.row, drawn))
        step = np.where(ahead.there, ahead.row - base, 0.0) + np.where(
            one.there & other.there, one.row - other.row, 0.0
        )
        moved = base + pull * step
        moved = np.where(moved < 0, base / 2, np.where(moved > 1, (1 + base) / 2, moved))
        # Values of a choice have no difference: where the two differ, it is the first one's, else the best's.
        picked = np.where(one.there & (one.row != other.row), one.row, np.where(ahead.there, ahead.row, drawn))
        picked = np.where(rng.random(len(base)) < ANY, drawn, picked)
        changed = rng.random(len(base)) < share
        changed[rng.integers(len(base))] = True
        return self._box.stepped(np.where(changed, np.where(self._box.choices > 0, picked, moved), base))

    def _restart_if_settled(self) -> None:
        members = [it for it in self._members if it is not None]
        if len(members) < len(self._members):
            return
        rows = np.array([it.row for it in members])
        if (rows.max(axis=0) - rows.min(axis=0)).max() < SETTLED:
            best = int(np.argmin(badness([it.values for it in members])))
            self._members = [it if at == best else None for at, it in enumerate(self._members)]


def _is_better(old: tuple[float, ...] | None, new: tuple[float, ...] | None) -> bool:
    """Whether the old one stays: of equals the new one is taken, so that a population can drift over a plateau."""
    return old is not None and (new is None or dominates(old, new))
