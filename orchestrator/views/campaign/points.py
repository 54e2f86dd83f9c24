"""What a chart is drawn from: the nodes of one run in their order, and the best that was kept up to each of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.goodput import in_order
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Node, Run
from orchestrator.domain.state import State
from orchestrator.views.campaign.looks import KEPT, Look, look_of


@dataclass(frozen=True)
class Point:
    """`score` is None where there is none, and then nothing is drawn in its place."""

    node: str
    order: int
    look: Look
    score: float | None
    cohort: str | None


@dataclass(frozen=True)
class Step:
    """The best kept score from `order` on, until the next step. A new cohort starts anew: `fresh`."""

    order: int
    score: float
    node: str
    fresh: bool


def points_of(state: State, metric: Metric, run: Run | None = None) -> list[Point]:
    run = run or state.run
    return [point_of(order, node, metric) for order, node in enumerate(in_order(state, run), 1)]


def point_of(order: int, node: Node, metric: Metric) -> Point:
    verdict = node.verdict if node.ending and node.ending.scoreable else None
    value = verdict.metrics.get(metric.name) if verdict else None
    if value is not None and not math.isfinite(value):
        value = None
    return Point(node.id, order, look_of(node), value, verdict.cohort if verdict else None)


def stair_of(state: State, points: Sequence[Point], metric: Metric) -> list[Step]:
    """The running best of what was kept. Where a cohort is met for the first time, it starts from those of the nodes
    before it that were run again there, for no score of another cohort may be compared with it.
    """
    steps: list[Step] = []
    cohorts: set[str | None] = {None}
    cohort, best = None, None
    for point in points:
        if point.cohort not in cohorts:
            cohorts.add(point.cohort)
            cohort = point.cohort
            best = _carried(state, points[: point.order - 1], point, metric)
            steps += [best] if best else []
        better = best is None or (point.score is not None and metric.merit(point.score) > metric.merit(best.score))
        if point.look is KEPT and point.score is not None and point.cohort == cohort and better:
            best = Step(point.order, point.score, point.node, fresh=best is None)
            steps.append(best)
    return steps


def _carried(state: State, earlier: Sequence[Point], first: Point, metric: Metric) -> Step | None:
    """What the cohort of `first` has of nodes that were opened before it."""
    best: Step | None = None
    for point in earlier:
        verdict = state.nodes[point.node].verdicts.get(first.cohort or "")
        value = verdict.metrics.get(metric.name) if verdict and point.look is KEPT else None
        if value is not None and (best is None or metric.merit(value) > metric.merit(best.score)):
            best = Step(first.order, value, point.node, fresh=True)
    return best
