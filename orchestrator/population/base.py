"""One question: which member does the next branch start from? Pure: the same members and seed get the same answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from orchestrator.domain.frontier import merits_of
from orchestrator.domain.goodput import comparable
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Ranking, Rule
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.state import State
from orchestrator.task import ArchiveSpec

Place = tuple[tuple[float, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Member:
    """A node that may be built on, the so-manieth attempt of its run. `standing` is its place in one order, more is
    better; so it is with each of `tasks`. `metrics` are all that its judge reported, as they are.
    """

    node: str
    number: int
    standing: tuple[float, ...]
    tasks: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def place(self) -> Place:
        """The greatest is the best; of several that stand alike, the first one is."""
        return self.standing, tuple(-part for part in order_of(self.node))


@dataclass(frozen=True)
class ParentContext:
    """What a rule is made of: the grid of the task file, and the baseline, once it is measured."""

    archive: ArchiveSpec | None = None
    baseline: Member | None = None


class ParentRule(Protocol):
    """Of one island in one cohort. It must not matter in which order members come."""

    def add(self, member: Member) -> None:
        """Once for each. What this costs does not grow with the number of members."""

    def draw(self, seed: str) -> str | None:
        """The node to start from; None for the best of the island."""


def standing_of(ranking: Ranking, metrics: Mapping[str, float]) -> tuple[float, ...]:
    """Under Pareto the metrics from left to right: what dominates another comes before it there, too."""
    return ranking.merits(metrics) if ranking.rule is Rule.PARETO else ranking.standing(metrics)


def member_of(state: State, ranking: Ranking, node: Node, run: Run) -> Member | None:
    """None for a control, and for one that may not be ranked in the run's present cohort. Where scores are noisy, the
    repeats of its test count.
    """
    if node.role is Role.CONTROL or run_of(node.id) != run.number:
        return None
    verdict, found = comparable(node, run), headline(state, node, run.cohort)
    if verdict is None or found is None or ranking.missing(found.metrics):
        return None
    standing = standing_of(ranking, found.metrics)
    return Member(node.id, node.number, standing, merits_of(verdict), verdict.metrics)
