"""Whether what is gained in development is gained on the held-out split, too; seen through what the ladder released.

A released value is rounded to a step, and so is the baseline's: a gap that grew by no more than a step may be rounding.
"""

from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import HeldOut, Node, Run
from orchestrator.domain.state import State


@dataclass(frozen=True)
class Asked:
    """A node that the split was asked about. `growth` is how much further development runs ahead of the held-out split
    than at the baseline; where the node is not better there, its value is unknown and the growth is the least that it
    can be. None where there is nothing to compare.
    """

    node: str
    query: int
    better: bool
    kept: bool
    development: float
    released: float | None
    growth: float | None
    step: float

    @property
    def overfits(self) -> bool:
        return self.growth is not None and self.growth > self.step * (1 + 1e-9)


@dataclass(frozen=True)
class Drift:
    """Of a run, in the order of asking; `asked` of `askable` queries are the whole campaign's, baselines included."""

    asked: int
    askable: int
    baseline: Asked | None
    nodes: tuple[Asked, ...]

    @property
    def refused(self) -> int:
        return sum(not it.better for it in self.nodes)

    @property
    def worst(self) -> Asked | None:
        """The node whose gap grew most, if by more than a step: what was gained there is overfitting."""
        found = [it for it in self.nodes if it.overfits]
        return max(found, key=lambda it: it.growth or 0.0) if found else None

    def record(self) -> dict[str, Any]:
        worst = self.worst
        return {
            "asked": self.asked,
            "queries": self.askable,
            "baseline": asdict(self.baseline) if self.baseline else None,
            "nodes": [{**asdict(it), "overfits": it.overfits} for it in self.nodes],
            "not_better": self.refused,
            "overfits": worst.node if worst else None,
        }


def drift(state: State, metric: Metric, run: Run | None = None) -> Drift | None:
    """None for a campaign that has never asked. `metric` is the first of the run's ranking."""
    run = run or state.run
    if not state.campaign.asked:
        return None
    lines = (line for line in state.counted().of_run(run.number).notable if line.heldout and line.id != run.root)
    asked = [found for line in lines if (found := asked_about(state, state.nodes[line.id], metric))]
    order = sorted(asked, key=lambda it: it.query)
    baseline = asked_about(state, state.nodes[run.root], metric) if run.root in state.nodes else None
    return Drift(state.campaign.asked, state.campaign.askable, baseline, tuple(order))


def asked_about(state: State, node: Node, metric: Metric) -> Asked | None:
    """What the split said of one node; None for one that it was not asked about."""
    found = headline(state, node)
    if not node.heldout or found is None or metric.name not in found.metrics:
        return None
    cohort, answer = next(iter(node.heldout.items()))
    root = state.nodes[str(run_of(node.id))]
    before = headline(state, root, found.cohort)
    return Asked(
        node=node.id,
        query=answer.query,
        better=answer.better,
        kept=node.kept,
        development=found.metrics[metric.name],
        released=answer.released,
        growth=_growth(found, before, answer, root.heldout.get(cohort), metric) if node.id != root.id else None,
        step=answer.step,
    )


def _growth(
    found: Headline, before: Headline | None, answer: HeldOut, start: HeldOut | None, metric: Metric
) -> float | None:
    if before is None or before.cohort != found.cohort or start is None:
        return None
    if start.released is None or answer.released is None:
        return None
    gained = metric.merit(found.metrics[metric.name]) - metric.merit(before.metrics[metric.name])
    held = metric.merit(answer.released) - metric.merit(start.released) + (0.0 if answer.better else answer.step)
    return gained - held
