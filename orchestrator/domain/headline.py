"""The value that a node is shown with, in one place for every view.

Where scores are noisy, a candidate that is tested was chosen because its first score was lucky: what counts are the
repeats, so their median is what is shown. A node without repeats has only been screened, and is marked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high, median_low

from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Purpose
from orchestrator.domain.state import State
from orchestrator.domain.tier import USUAL, Tier
from orchestrator.domain.verdict import Verdict

# Stands before a value that one run of a noisy task came to; LEGEND explains it.
MARK = "~"
LEGEND = f"{MARK} screened only: one run of a noisy task; values without it are medians of the repeats"


@dataclass(frozen=True)
class Headline:
    """`runs` is how many repeats the metrics are medians of, 0 where they are those of the first run. `at_most` names
    times that may be less. `tier` is what the judge's word is worth.
    """

    metrics: Mapping[str, float]
    cohort: str
    runs: int = 0
    screened: bool = False
    at_most: tuple[str, ...] = ()
    tier: Tier = USUAL

    @property
    def mark(self) -> str:
        return MARK if self.screened else ""


def headline(state: State, node: Node, cohort: str | None = None) -> Headline | None:
    """What a node is shown with, in the given cohort where it was measured there, else in its own; None without any."""
    first = node.verdicts.get(cohort or "") or node.verdict
    if first is None:
        return None
    runs = repeats_of(state, node, first.cohort) if first.valid else []
    if not runs:
        screened = first.valid and state.runs[str(run_of(node.id))].noisy
        return Headline(first.metrics, first.cohort, screened=screened, at_most=first.at_most, tier=first.tier)
    # What only the first run has is no ranked metric: every repeat must have those.
    names = [name for name in first.metrics if all(name in it.metrics for it in runs)]
    medians = {name: middle([it.metrics[name] for it in runs]) for name in names}
    # The median of many is a bound where half of them are.
    at_most = tuple(name for name in names if 2 * sum(name in it.at_most for it in runs) >= len(runs))
    return Headline(medians, first.cohort, runs=len(runs), at_most=at_most, tier=first.tier)


def repeats_of(state: State, node: Node, cohort: str) -> list[Verdict]:
    """A node's repeats in a cohort, those of its own last test: what was measured of it later, as a champion, belongs
    to others' tests. A baseline has no test of its own: all that it was measured for others counts, in a noisy run.
    """
    if node.trials <= 1 and not node.measured:
        return []  # a repeat comes after a first run; to look at every trial of a long campaign takes seconds
    since = node.certification.since if node.certification else 0
    last = node.ended_trials if node.certification and node.ended_trials else node.trials
    own = (state.trials[f"{node.id}-{number}"] for number in range(since + 1, last + 1))
    told = [it for it in own if it.purpose is Purpose.REPEAT]
    if node.certification and not node.ended_trials:  # of an older ledger: a clock that went back loses some
        told = [it for it in told if not node.ended_at or it.started_at <= node.ended_at]
    elif not node.certification and state.runs[str(run_of(node.id))].noisy:
        told += [state.trials[name] for name in node.measured]
    return [it.verdict for it in told if it.verdict and it.verdict.valid and it.verdict.cohort == cohort]


def middle(values: Sequence[float]) -> float:
    """Their median, also of two whose sum is no number any more."""
    middle = median(values)
    return middle if math.isfinite(middle) else median_low(values) / 2 + median_high(values) / 2
