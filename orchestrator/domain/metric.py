"""Metrics and what "better" means: left to right, by weights, or by Pareto dominance."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from orchestrator.domain.fingerprint import DEFAULT_BINDS

# Words of a name that say that a metric is a time, or made of one; not where it says how far off a time is, or that
# time is counted in steps. `makespan` is none: that of a schedule is computed.
_OF_TIME = re.compile(
    r"(?<![a-z])((milli|micro|nano)?seconds|[mun]?secs?|[mun]s|minutes|hours|time|timing|runtime|walltime|cputime"
    r"|wall.?clock|latency|latencies|elapsed|durations?|speed|speedup|slowdown|throughput|[fqr]ps|iops"
    r"|per.([mun]?s|secs?|seconds?|mins?|minutes?|hours?)|(?<=[ _.-])s$)(?![a-z])"
    r"(?!.(errors?|loss|mae|r?mse|accuracy|complexity|series|steps?)(?![a-z]))"
)


class Goal(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"


class Rule(StrEnum):
    LEXICOGRAPHIC = "lexicographic"
    WEIGHTED = "weighted"
    PARETO = "pareto"


@dataclass(frozen=True)
class Metric:
    """`binds` are the fingerprint's fields that must be equal to compare it; past `ceiling` it is not believed.

    `timing` marks seconds that were measured over a channel: less than that can tell is no measurement. One with
    `before` decides before those that stand left of it.
    """

    name: str = "score"
    goal: Goal = Goal.HIGHER
    weight: float = 1.0
    binds: tuple[str, ...] = DEFAULT_BINDS
    target: float | None = None
    ceiling: float | None = None
    timing: bool = False
    before: bool = False

    @property
    def is_time(self) -> bool:
        """Whether the task says so, or its name does: no run of the same code takes the same time again."""
        return self.timing or bool(_OF_TIME.search(re.sub("(?<=[a-z])(?=[A-Z])", " ", self.name).lower()))

    def merit(self, value: float) -> float:
        """The value turned so that more is better."""
        return value if self.goal is Goal.HIGHER else -value

    def too_good(self, value: float) -> bool:
        return self.ceiling is not None and self.merit(value) > self.merit(self.ceiling)

    def reached(self, value: float) -> bool:
        return self.target is not None and self.merit(value) >= self.merit(self.target)


@dataclass(frozen=True)
class Ranking:
    metrics: Sequence[Metric]
    rule: Rule = Rule.LEXICOGRAPHIC

    def merits(self, values: Mapping[str, float]) -> tuple[float, ...]:
        return tuple([metric.merit(values[metric.name]) for metric in self.metrics])

    def better(self, new: Mapping[str, float], old: Mapping[str, float]) -> bool:
        """Whether `new` is strictly better. A tie, or two that Pareto does not order, is not better."""
        mine, theirs = self.merits(new), self.merits(old)
        if self.rule is Rule.LEXICOGRAPHIC:
            return self._in_order(mine) > self._in_order(theirs)
        if self.rule is Rule.WEIGHTED:
            return self._weighed(mine) > self._weighed(theirs)
        return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))

    def standing(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """A place in one order, for what has to be sorted. Pareto has none: ValueError."""
        if self.rule is Rule.PARETO:
            raise ValueError("Pareto gives no single order")
        merits = self.merits(values)
        return self._in_order(merits) if self.rule is Rule.LEXICOGRAPHIC else (self._weighed(merits),)

    def _in_order(self, merits: Sequence[float]) -> tuple[float, ...]:
        return tuple(map(merits.__getitem__, self._places))

    @cached_property
    def _places(self) -> list[int]:
        return sorted(range(len(self.metrics)), key=lambda at: not self.metrics[at].before)

    def _weighed(self, merits: Sequence[float]) -> float:
        return sum(metric.weight * merit for metric, merit in zip(self.metrics, merits, strict=True))

    def missing(self, values: Mapping[str, float]) -> list[str]:
        return [metric.name for metric in self.metrics if metric.name not in values]

    def too_good(self, values: Mapping[str, float]) -> list[str]:
        return [metric.name for metric in self.metrics if metric.too_good(values[metric.name])]

    @property
    def times(self) -> list[str]:
        """The metrics that were measured over a channel."""
        return [metric.name for metric in self.metrics if metric.timing]

    def drowned(self, values: Mapping[str, float], least: float) -> list[str]:
        """The times, less being better, that are less than what their channel can tell from none."""
        of_time = (it.name for it in self.metrics if it.timing and it.goal is Goal.LOWER)
        return [name for name in of_time if values[name] < least]

    def reached(self, values: Mapping[str, float]) -> bool:
        """Whether every target that is set is reached; False where none is."""
        wanted = [metric for metric in self.metrics if metric.target is not None]
        return bool(wanted) and all(metric.reached(values[metric.name]) for metric in wanted)

    @property
    def binds(self) -> dict[str, tuple[str, ...]]:
        return {metric.name: metric.binds for metric in self.metrics}
