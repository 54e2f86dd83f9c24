"""What a sampler's model is asked, and what it is told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.metric import Ranking, Rule
from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point


@dataclass(frozen=True)
class Known:
    """The `place`-th attempt that ended, with a point of the space. No merits: it ended without a valid score.

    `number` is the one that the proposer was asked for it by.
    """

    place: int
    point: Mapping[str, Value]
    merits: tuple[float, ...] | None
    number: int


class Engine(Protocol):
    """Told every ended attempt once, in their order. What it offers follows from that and from what is asked alone."""

    def tell(self, known: Known) -> None: ...

    def offers(self, running: Sequence[Point], seed: int, number: int) -> Iterator[Point]:
        """Some points worth trying, the best first; none where too little is known. There is an end to them. It may be
        read in another thread, while more is told: what was told by the time of the call counts."""


def objectives(ranking: Ranking, merits: tuple[float, ...]) -> tuple[float, ...]:
    """What is to be made large: one number, or for Pareto as many as there are metrics."""
    match ranking.rule:
        case Rule.LEXICOGRAPHIC:
            return merits[:1]
        case Rule.WEIGHTED:
            return (sum(it.weight * merit for it, merit in zip(ranking.metrics, merits, strict=True)),)
        case Rule.PARETO:
            return merits


def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)


def badness(values: Sequence[tuple[float, ...] | None]) -> list[float]:
    """One objective: its negative. Several: how many are better in all of them, and the sum of places decides ties.

    What failed is worse than all else.
    """
    scored = [it for it in values if it is not None]
    if not scored:
        return [0.0] * len(values)
    if len(scored[0]) == 1:
        bad = [-it[0] for it in scored]
    else:
        places = [sum(sum(other[at] > it[at] for other in scored) for at in range(len(it))) for it in scored]
        beaten = [sum(dominates(other, it) for other in scored) for it in scored]
        bad = [first + second / (1 + max(places)) for first, second in zip(beaten, places, strict=True)]
    rest, worst = iter(bad), max(bad)
    return [worst + 1 + abs(worst) if it is None else next(rest) for it in values]
