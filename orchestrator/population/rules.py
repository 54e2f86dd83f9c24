"""Rules that choose a parent by how members stand, what they are best at, or how unlike the others they are."""

import bisect
import math
import random
from collections.abc import Mapping, Sequence

from orchestrator.domain.frontier import Frontier
from orchestrator.domain.node import order_of
from orchestrator.population.base import Member, ParentRule

_PLAYERS = 3
# So few that a draw takes a millisecond, whatever a judge reports.
_POOL = 32
_AXES = 16
_NEIGHBOURS = 3


class Best:
    """The champion, or the best of an island."""

    def add(self, member: Member) -> None:
        """The best is known without a rule."""

    def draw(self, seed: str) -> None:
        del seed


class BestAtTasks:
    """One that is best at a task, as likely as the number of tasks at which nobody is better."""

    def __init__(self) -> None:
        self._frontier = Frontier()

    def add(self, member: Member) -> None:
        if member.tasks:
            self._frontier.add(member.node, member.tasks)

    def draw(self, seed: str) -> str | None:
        return self._frontier.draw(seed)


class Tournament:
    """The best of three of the best: the better, the likelier, and all of them but the last two may win."""

    def __init__(self) -> None:
        self._best: list[Member] = []

    def add(self, member: Member) -> None:
        bisect.insort(self._best, member, key=lambda it: it.place)
        del self._best[:-_POOL]

    def draw(self, seed: str) -> str | None:
        if not self._best:
            return None
        players = _dice(seed).sample(range(len(self._best)), min(_PLAYERS, len(self._best)))
        return self._best[max(players)].node


class Novelty:
    """As likely as it is unlike its nearest neighbours, by what the judge says of single tasks, or else by all metrics.

    Among the newest members and the best one: what was unlike all others long ago may be common by now.
    """

    def __init__(self) -> None:
        self._newest: list[Member] = []
        self._best: Member | None = None
        self._weights: list[tuple[str, float]] | None = None

    def add(self, member: Member) -> None:
        self._weights = None
        bisect.insort(self._newest, member, key=lambda it: (it.number, order_of(it.node)))
        del self._newest[:-_POOL]
        if self._best is None or member.place > self._best.place:
            self._best = member

    def draw(self, seed: str) -> str | None:
        if self._best is None:
            return None
        if self._weights is None:
            pool = {it.node: it for it in (self._best, *self._newest)}
            self._weights = _distances(list(pool.values()))
        names, weights = zip(*self._weights, strict=True)
        chosen: str = _dice(seed).choices(names, weights if any(weights) else None)[0]
        return chosen


class Several:
    """One of several rules for each branch, each as likely as the others; a search that learns says which."""

    def __init__(self, rules: Mapping[str, ParentRule]) -> None:
        self.rules = rules

    def add(self, member: Member) -> None:
        for rule in self.rules.values():
            rule.add(member)

    def draw(self, seed: str) -> str | None:
        return self.rules[_dice(f"{seed}/rule").choice(list(self.rules))].draw(seed)


def _distances(members: Sequence[Member]) -> list[tuple[str, float]]:
    """How far each is from its nearest neighbours, in the order of the nodes."""
    members = sorted(members, key=lambda it: order_of(it.node))
    places = _scaled([it.tasks or it.metrics for it in members])
    found = []
    for member, place in zip(members, places, strict=True):
        away = sorted(math.dist(place, other) for other in places)[1 : _NEIGHBOURS + 1]
        found.append((member.node, sum(away) / len(away) if away else 1.0))
    return found


def _scaled(rows: Sequence[Mapping[str, float]]) -> list[list[float]]:
    """Each axis from 0 to 1 over what was seen on it; what is missing there is as bad as the worst."""
    places: list[list[float]] = [[] for _ in rows]
    for name in sorted({name for row in rows for name in row})[:_AXES]:
        seen = [row[name] for row in rows if name in row]
        # Halved first: the difference of two huge numbers is no number.
        low, span = min(seen), max(seen) / 2 - min(seen) / 2
        for place, row in zip(places, rows, strict=True):
            place.append((row.get(name, low) / 2 - low / 2) / span if span else 0.0)
    return places


def _dice(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - not for secrets: the seed is in the ledger
