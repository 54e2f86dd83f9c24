"""Two ways to search, compared on campaigns that come in pairs: the same seed, the same budget, side by side.

What counts of a campaign is the best that it kept, with the values that nodes are shown with: where scores are noisy,
the medians of repeats. A campaign without any is the worst result there is, and its pair counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, median_low

from orchestrator.domain.goodput import in_order
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Goal, Ranking, Rule
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.signed_rank import Difference, difference_of
from orchestrator.domain.state import State

_ATTEMPTS = (Role.SEARCH, Role.INJECTED)


@dataclass(frozen=True)
class Scale:
    """The one number that two campaigns are compared by: the first metric, or the weighted sum of all."""

    name: str
    goal: Goal
    target: float | None = None

    @classmethod
    def of(cls, ranking: Ranking) -> "Scale":
        first = ranking.metrics[0]
        if ranking.rule is Rule.WEIGHTED:
            return cls("the weighted sum", Goal.HIGHER)
        return cls(first.name, first.goal, first.target)

    def merit(self, value: float | None) -> float:
        """More is better; nothing is worse than no value."""
        if value is None:
            return -math.inf
        return value if self.goal is Goal.HIGHER else -value

    def of_merit(self, merit: float) -> float:
        # Not -merit, which makes a minus of nothing.
        return merit if self.goal is Goal.HIGHER else 0.0 - merit


@dataclass(frozen=True)
class Outcome:
    """What came of one campaign. `steps` are the values of what it kept, each after so many charged attempts, from the
    baseline on. `failed` is why it has none, `note` what else a reader must know.
    """

    steps: tuple[tuple[int, float], ...] = ()
    attempts: int = 0
    usd: int = 0
    cohort: str = ""
    failed: str = ""
    note: str = ""

    @property
    def final(self) -> float | None:
        return self.steps[-1][1] if self.steps else None

    def reached(self, target: float, scale: Scale) -> int | None:
        """After how many attempts; None where it never did."""
        return next((at for at, value in self.steps if scale.merit(value) >= scale.merit(target)), None)

    def mean(self, attempts: int) -> float | None:
        """The best value, averaged over the first so many attempts: the area below the curve. One that ended early
        keeps its last value.
        """
        if not self.steps or not attempts:
            return self.final
        ends = [at for at, _ in self.steps[1:]] + [max(attempts, self.steps[-1][0])]
        spans = [(min(end, attempts) - min(at, attempts)) for (at, _), end in zip(self.steps, ends, strict=True)]
        return math.fsum(span * value for span, (_, value) in zip(spans, self.steps, strict=True)) / attempts


@dataclass(frozen=True)
class Pair:
    seed: int
    a: Outcome
    b: Outcome

    @property
    def is_comparable(self) -> bool:
        """Whether both were measured under the same conditions, as far as they were measured."""
        return not (self.a.cohort and self.b.cohort) or self.a.cohort == self.b.cohort


@dataclass(frozen=True)
class Versus:
    """How b differs from a. Differences are of merits: above nothing is better for b. `to_target` is of the logarithms
    of attempts, where below nothing is better for b; a campaign that never got there took longer than any that did.
    `is_baseline`: no target was named, and what the worse side reaches is where all of them began, so there is none.
    """

    target: float | None
    target_is: str
    final: Difference | None
    mean: Difference | None
    to_target: Difference | None
    is_baseline: bool = False


def outcome_of(
    state: State, ranking: Ranking, usd: int, run: Run | None = None, attempts: int | None = None
) -> Outcome:
    """Of the present run of a campaign, or of the first so many `attempts` of another."""
    run = run or state.run
    root = state.nodes.get(run.root)
    found: list[tuple[int, float]] = []
    start = _value(state, root, run, ranking) if root and root.phase is Phase.ENDED else None
    if start is not None:
        found.append((0, start))
    ended = [it for it in in_order(state, run) if it.role in _ATTEMPTS and it.ending and it.ending.charged]
    ended = sorted(ended, key=lambda node: node.ended_place)[:attempts]
    for number, node in enumerate(ended, 1):
        value = _value(state, node, run, ranking) if node.kept else None
        if value is not None:
            found.append((number, value))
    return Outcome(tuple(found), len(ended), usd, run.cohort or "")


def versus(pairs: Sequence[Pair], scale: Scale, attempts: int, target: float | None = None) -> Versus:
    """Of complete pairs. Without a target that was asked for, the task's own counts, else what the worse side gets to
    in half of its campaigns.
    """
    usable = [pair for pair in pairs if pair.is_comparable]
    target_is = "as asked" if target is not None else "the task's" if scale.target is not None else ""
    target, is_baseline = target if target is not None else scale.target, False
    if target is None and usable:
        merits = [median_low([scale.merit(of.final) for of in side]) for side in _sides(usable)]
        found = scale.of_merit(min(merits)) if math.isfinite(min(merits)) else None
        begun = [of for side in _sides(usable) for of in side if of.steps]
        is_baseline = found is not None and all(of.reached(found, scale) == 0 for of in begun)
        target = None if is_baseline else found
        target_is = "what the worse side reaches in half of its campaigns"
    means = [(scale.merit(it.a.mean(attempts)), scale.merit(it.b.mean(attempts))) for it in usable]
    return Versus(
        target=target,
        target_is=target_is if target is not None else "",
        final=difference_of([_less(scale.merit(it.b.final), scale.merit(it.a.final)) for it in usable]),
        mean=difference_of([_less(theirs, mine) for mine, theirs in means]),
        to_target=difference_of([_less(*map(_log, _reached(it, target, scale))) for it in usable])
        if target is not None
        else None,
        is_baseline=is_baseline,
    )


def median_of(counts: Sequence[int | None]) -> float | None:
    """Of attempts to a target, None for never: None where at least half never got there."""
    found = median([math.inf if it is None else float(it) for it in counts]) if counts else math.inf
    return found if math.isfinite(found) else None


def _reached(pair: Pair, target: float, scale: Scale) -> tuple[int | None, int | None]:
    return pair.b.reached(target, scale), pair.a.reached(target, scale)


def _log(attempts: int | None) -> float:
    """A baseline that is there already took less than one attempt."""
    return math.inf if attempts is None else math.log(max(attempts, 0.5))


def _less(one: float, other: float) -> float:
    """Two that are both without end do not differ."""
    return 0.0 if one == other else one - other


def _sides(pairs: Sequence[Pair]) -> tuple[list[Outcome], list[Outcome]]:
    return [it.a for it in pairs], [it.b for it in pairs]


def _value(state: State, node: Node, run: Run, ranking: Ranking) -> float | None:
    found = headline(state, node, run.cohort)
    if found is None or found.cohort != run.cohort or ranking.missing(found.metrics):
        return None
    if ranking.rule is Rule.WEIGHTED:
        return ranking.standing(found.metrics)[0]
    return found.metrics[ranking.metrics[0].name]
