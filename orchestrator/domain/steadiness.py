"""Whether the machine got faster or slower while it measured, seen from what a champion scored time after time.

It is the same program each time. On a steady machine every order of its scores is as likely as any other; where the
machine drifts, by a trend, a step or a season, neighbours in time are more alike than that. Bartels' ratio of ranks,

    sum of (R[i] - R[i+1])^2 / sum of (R[i] - mean)^2,

has the mean 2 on a steady machine, whatever the scores look like, and is smaller on one that drifts. What each
champion's scores give is added up, each by its own deviation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, median

from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict

# Below this many in all the ratio is not near enough to a normal distribution, and little would be seen anyway.
LEAST = 20
ERROR = 0.01
_LEAST_OF_ONE = 5
_PARTS = 5


@dataclass(frozen=True)
class MachineDrift:
    """`champion` is the node by whose scores it is shown best; `lowest` and `highest` are the medians of its scores at
    different times, in the first metric. `p` is how often a steady machine looks as unsteady.
    """

    champion: str
    metric: str
    lowest: float
    highest: float
    measured: int
    p: float

    @property
    def words(self) -> str:
        told = f"{self.champion} measured {self.metric} {self.lowest:.4g} to {self.highest:.4g} at different times"
        return f"the machine drifted: {told}; runs were compared in turn, so no verdict depends on it"


def machine_drift(state: State, run: Run, ranking: Ranking) -> MachineDrift | None:
    """None where a run's machine was steady, or where too little was measured in turn to tell."""
    if not run.noisy:
        return None
    series: dict[str, list[Verdict]] = {}
    for node in state.counted().of_run(run.number).notable:
        name = node.id
        told = [state.trials[it].verdict for it in node.measured]
        same = [it for it in told if it and it.cohort == run.cohort]
        if len(same) >= _LEAST_OF_ONE:
            series[name] = same
    measured = sum(map(len, series.values()))
    if measured < LEAST:
        return None
    p = p_of_steady([[ranking.standing(it.metrics) for it in told] for told in series.values()])
    if p > ERROR:
        return None
    champion, metric = max(series, key=lambda it: len(series[it])), ranking.metrics[0].name
    medians = _medians([it.metrics[metric] for it in series[champion]])
    return MachineDrift(champion, metric, min(medians), max(medians), measured, p)


def p_of_steady(series: Sequence[Sequence[tuple[float, ...]]]) -> float:
    """How often scores that are all alike in distribution follow each other as evenly as these, or more so."""
    surplus, variance = 0.0, 0.0
    for values in series:
        ranks = _ranks(values)
        spread = sum((it - (len(ranks) + 1) / 2) ** 2 for it in ranks)
        if not spread:
            continue
        n, ratio = len(ranks), sum((a - b) ** 2 for a, b in pairwise(ranks)) / spread
        # Each counts by how many there are of it; the variance is Bartels' own.
        surplus += n * (ratio - 2)
        variance += n**2 * 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return NormalDist().cdf(surplus / math.sqrt(variance)) if variance else 1.0


def _ranks(values: Sequence[tuple[float, ...]]) -> list[float]:
    """From 1 on; those that are equal share the mean of theirs."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order, start=1)))}
    last = {value: place for place, value in enumerate(order, start=1)}
    return [(first[value] + last[value]) / 2 for value in values]


def _medians(values: Sequence[float]) -> list[float]:
    """Of up to five stretches of time with as many scores in each."""
    parts = min(_PARTS, len(values) // _LEAST_OF_ONE)
    bounds = [round(part * len(values) / parts) for part in range(parts + 1)]
    return [median(values[a:b]) for a, b in pairwise(bounds)]
