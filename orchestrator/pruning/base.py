"""One question: go on, or stop? Pure: the same curve among the same peers gets the same answer."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from orchestrator.domain.reports import Point


class Decision(NamedTuple):
    """`why` is for people, and empty where nothing speaks against going on."""

    prune: bool
    why: str = ""


KEEP = Decision(False)


@dataclass(frozen=True)
class Peer:
    """A trial that is over, by the curve that it reported."""

    trial: str
    points: tuple[Point, ...]

    @cached_property
    def _steps(self) -> list[int]:
        return [step for step, _ in self.points]

    @property
    def last(self) -> Point:
        return self.points[-1]

    def at(self, step: int) -> float | None:
        """What it had reported by then; None where it had not begun, or was over before."""
        place = bisect_right(self._steps, step)
        return self.points[place - 1][1] if place and step <= self.last[0] else None


@dataclass(frozen=True)
class Peers:
    """Whom a trial is compared with: those that the judge scored, those that were pruned, and the best of the former
    by the judge's word. `count` is how many were scored, the ones that are not here included.
    """

    scored: Sequence[Peer] = ()
    pruned: Sequence[Peer] = ()
    best: Peer | None = None
    count: int = 0


class Rule(Protocol):
    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        """Of a curve with at least one point, the last one new."""
