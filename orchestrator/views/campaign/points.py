"""What a chart is drawn from: the nodes of one run in their order, and the best that was kept up to each of them."""

import math
from collections.abc import Sequence
from operator import attrgetter

from orchestrator.domain.census import read_sort
from orchestrator.domain.dots import Dot
from orchestrator.domain.goodput import lines_in_order
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.lines import AnyNode, VerdictLine
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.state import State, no_collection
from orchestrator.views.campaign.looks import KEPT, look_of
from orchestrator.views.render.model import Look, Point, Series, Step

_OPENED_ORDER = attrgetter("opened_order")


def series_of(state: State, metric: Metric, run: Run | None = None) -> Series:
    run = run or state.run
    points = points_of(state, metric, run)
    return Series(metric.name, metric.goal, run.number, points, stair_of(state, points, metric))


def points_of(state: State, metric: Metric, run: Run | None = None) -> list[Point]:
    run = run or state.run
    with no_collection():
        found = _from_dots(state, metric, run)
        if found is None:
            found = [point_of(state, order, node, metric) for order, node in enumerate(lines_in_order(state, run), 1)]
        return found


def _from_dots(state: State, metric: Metric, run: Run) -> list[Point] | None:
    """None where not all dots are known, or they do not say which node was opened first."""
    known = state.dotted()
    if known is None:
        return None
    dots, nodes = known
    own = {text: _looked(text, run) for text in {dot.sort for dot in dots} if text.startswith(f"{run.number}/")}
    every: list[Dot | AnyNode] = [dot for dot in dots if dot.sort in own]
    every += [node for node in nodes if run_of(node.id) == run.number]
    every.sort(key=_OPENED_ORDER)
    if len(set(map(_OPENED_ORDER, every))) < len(every):
        return None
    points: list[Point] = []
    for order, it in enumerate(every, 1):
        if not isinstance(it, Dot):
            points.append(point_of(state, order, it, metric))
            continue
        look, cohort, screened = own[it.sort]
        points.append(Point(it.node, order, look, (it.scores or {}).get(metric.name), cohort, screened))
    return points


def _looked(text: str, run: Run) -> tuple[Look, str | None, bool]:
    """What dots of a sort have in common."""
    sort = read_sort(text)
    verdict = sort.verdict if sort.ending.scoreable else None
    return look_of(sort), verdict.cohort if verdict else None, run.noisy and verdict is not None


def point_of(state: State, order: int, node: AnyNode, metric: Metric) -> Point:
    found, screened = _shown(state, node) if node.ending and node.ending.scoreable else (None, False)
    if found is None:
        return Point(node.id, order, look_of(node), None, None)
    value = found.metrics.get(metric.name)
    if value is not None and not math.isfinite(value):
        value = None
    return Point(node.id, order, look_of(node), value, found.cohort, screened)


def _shown(state: State, node: AnyNode) -> tuple[Headline | VerdictLine | None, bool]:
    """What has its metrics, and whether it was only screened. Of a node that ran once, its line is enough."""
    if isinstance(node, Node) or node.trials > 1 or node.measured:
        found = headline(state, state.nodes[node.id])
        return found, found is not None and found.screened
    verdict = node.verdict
    return verdict, verdict is not None and verdict.valid and state.runs[str(run_of(node.id))].noisy


def stair_of(state: State, points: Sequence[Point], metric: Metric) -> list[Step]:
    """The running best of what was kept. Where a cohort is met for the first time, it starts from those of the nodes
    before it that were run again there, for no score of another cohort may be compared with it. Points may be left out
    that are neither kept nor the first of their cohort. What minimising left is never the champion, however it scored.
    """
    steps: list[Step] = []
    cohorts: set[str | None] = {None}
    cohort, best = None, None
    for at, point in enumerate(points):
        if point.cohort not in cohorts:
            cohorts.add(point.cohort)
            cohort = point.cohort
            best = _carried(state, points[:at], point, metric)
            steps += [best] if best else []
        if point.look is not KEPT or point.score is None or point.cohort != cohort:
            continue
        if best is None or metric.merit(point.score) > metric.merit(best.score):
            if state.nodes[point.node].role is Role.MINIMISED:
                continue
            best = Step(point.order, point.score, point.node, fresh=best is None)
            steps.append(best)
    return steps


def _carried(state: State, earlier: Sequence[Point], first: Point, metric: Metric) -> Step | None:
    """What the cohort of `first` has of nodes that were opened before it."""
    best: Step | None = None
    for point in earlier:
        node = state.nodes[point.node] if point.look is KEPT else None
        found = headline(state, node, first.cohort) if node and node.role is not Role.MINIMISED else None
        value = found.metrics.get(metric.name) if found and found.cohort == first.cohort else None
        if value is not None and (best is None or metric.merit(value) > metric.merit(best.score)):
            best = Step(first.order, value, point.node, fresh=True)
    return best
