"""One question: go on, or stop? Pure: the same curve among the same peers gets the same answer."""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Point
from orchestrator.task import PruningSpec


class Decision(NamedTuple):
    """`why` is for people, and empty where nothing speaks against going on."""

    prune: bool
    why: str = ""


KEEP = Decision(False)


@dataclass(frozen=True)
class Peer:
    """A trial that is over, by the curve that it reported, and the judge's word on it: of `merit` more is better."""

    trial: str
    points: tuple[Point, ...]
    merit: float = 0.0

    @cached_property
    def _steps(self) -> list[int]:
        return [step for step, _ in self.points]

    @property
    def last(self) -> Point:
        return self.points[-1]

    def by(self, step: int) -> float | None:
        """The last value that it had reported by then; None where it had not begun."""
        place = bisect_right(self._steps, step)
        return self.points[place - 1][1] if place else None

    def at(self, step: int) -> float | None:
        """The same, and None too where it was over before."""
        return self.by(step) if self.points and step <= self.last[0] else None


@dataclass(frozen=True)
class Peers:
    """Whom a trial is compared with: those that the judge scored, those that were pruned, and the best of the former
    by the judge's word. `count` is how many were scored, the ones that are not here included. The baseline is no
    peer, but what the judge and its curve say is true of it.
    """

    scored: Sequence[Peer] = ()
    pruned: Sequence[Peer] = ()
    best: Peer | None = None
    count: int = 0
    baseline: Peer | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def last(self) -> int | None:
        """The furthest step of a trial that ran to its end, the baseline's too; None where nobody reported any."""
        whole = [*self.scored, *([self.baseline] if self.baseline else [])]
        return max((peer.last[0] for peer in whole if peer.points), default=None)


@dataclass(frozen=True)
class RuleContext:
    """What a rule is made of: its table of the task file, and what is better of the values that trials report."""

    spec: PruningSpec
    goal: Goal


class Rule(Protocol):
    """Says of a trial that still runs whether it is worth its time."""

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        """Of a curve with at least one point, the last one new."""
