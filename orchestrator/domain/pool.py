"""Which nodes of a stage are worth combining: good ones that are unlike each other. Pure.

`diversity` is the trade-off. At 0 the best are taken; at 1 each next one is the one that is farthest from those that
were taken before it. Merit counts by rank, and distance relative to the largest that is left, so that neither depends
on the scale of scores.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Goal, Ranking, Rule
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Stage, Verdict

Outputs = Mapping[str, bytes]

# Of all that can be chosen, so many of the best for each place in the pool are compared with each other.
_LOOKED_AT = 4
# What earlier candidates left is hostile: no more of a file, or of all files, is compared than this.
_FILE_BYTES = 256 * 1024
_FILES = 64
# A node that one of these refused is no better than it seemed, or not what it seemed.
_REFUSED_BY = (Stage.REPLAY, Stage.GUARDS, Stage.HELD_OUT, Stage.PERSON)


@dataclass(frozen=True)
class Chosen:
    """`distance` is that to the nearest of those before it, from 0 to 1; None for the first."""

    node: str
    distance: float | None


def eligible(state: State, run: Run, ranking: Ranking) -> list[Node]:
    """The nodes of a run that a pool can be made of, the best first: solutions of its present cohort that nothing was
    found against. Of those that left the same, the best. What minimising left of a node is that node once more.
    """
    nodes = [node for node in state.nodes.values() if run_of(node.id) == run.number and _is_sound(node, run)]
    nodes.sort(key=lambda node: (_place(state, node, run, ranking), [-part for part in order_of(node.id)]))
    found: dict[str, Node] = {}
    for node in reversed(nodes):
        found.setdefault(outputs_of(state, node) or node.id, node)
    return list(found.values())


def of_other_cohorts(state: State, run: Run) -> int:
    """How many of its nodes would do, were they measured on what the run is measured on now."""
    nodes = (node for node in state.nodes.values() if run_of(node.id) == run.number)
    return sum(_is_scored(node) and run.cohort not in node.verdicts for node in nodes)


def outputs_of(state: State, node: Node) -> str | None:
    """The list of what its trial left, while that is stored."""
    trial = state.trials.get(node.submitted or "")
    return trial.outputs if trial and not trial.let_go else None


def verdict_in(node: Node, run: Run) -> Verdict:
    return node.verdicts[run.cohort or ""]


def shortlist(nodes: Sequence[Node], run: Run, size: int) -> list[Node]:
    """Those that are compared with each other: the best, and the best at each task."""
    best = dict.fromkeys(node.id for node in nodes[: _LOOKED_AT * size])
    verdicts = {node.id: verdict_in(node, run) for node in nodes}
    tasks = sorted({task for verdict in verdicts.values() for task in verdict.tasks})
    for task in tasks[: _LOOKED_AT * size]:
        of_task = [node.id for node in nodes if task in verdicts[node.id].tasks]
        best.setdefault(max(of_task, key=lambda name: _merit(verdicts[name], task)))
    return [node for node in nodes if node.id in best]


def choose(
    nodes: Sequence[Node], run: Run, outputs: Mapping[str, Outputs], size: int, diversity: float
) -> list[Chosen]:
    """So many of the nodes, which come best first, or all where there are fewer."""
    left = {node.id: node for node in nodes}
    merits = {name: 1.0 - at / max(1, len(nodes) - 1) for at, name in enumerate(left)}
    scales = _scales([verdict_in(node, run) for node in nodes])
    chosen: list[Chosen] = []
    nearest = dict.fromkeys(left, 1.0)
    while left and len(chosen) < size:
        farthest = max(nearest[name] for name in left) or 1.0
        worth = {name: (1 - diversity) * merits[name] + diversity * nearest[name] / farthest for name in left}
        best = max(left, key=lambda name: worth[name]) if chosen else next(iter(left))
        node = left.pop(best)
        chosen.append(Chosen(best, nearest[best] if chosen else None))
        for name, other in left.items():
            apart = _distance(verdict_in(node, run), verdict_in(other, run), scales)
            far = [*apart, *disagreement(outputs.get(best), outputs.get(name))]
            nearest[name] = min(nearest[name], sum(far) / len(far) if far else 0.0)
    return chosen


def disagreement(one: Outputs | None, other: Outputs | None) -> list[float]:
    """The share of what two candidates left that differs: value by value, numbers by how far they are apart. Nothing
    where either is not there.
    """
    if one is None or other is None:
        return []
    names = sorted({*one, *other})[:_FILES]
    if not names:
        return []
    return [sum(_of_file(one.get(name), other.get(name)) for name in names) / len(names)]


def _of_file(one: bytes | None, other: bytes | None) -> float:
    if one == other:
        return 0.0
    if one is None or other is None:
        return 1.0
    mine, theirs = (data[:_FILE_BYTES].replace(b",", b" ").split() for data in (one, other))
    pairs = list(zip_longest(mine, theirs))
    return sum(_of_value(*pair) for pair in pairs) / len(pairs) if pairs else 1.0


def _of_value(one: bytes | None, other: bytes | None) -> float:
    if one == other:
        return 0.0
    try:
        mine, theirs = float(one or b""), float(other or b"")
    except ValueError:
        return 1.0
    if one is None or other is None or not (math.isfinite(mine) and math.isfinite(theirs)):
        return 1.0
    if mine.is_integer() and theirs.is_integer():  # a class or a count: near is not alike
        return float(mine != theirs)
    return min(1.0, abs(mine - theirs) / max(abs(mine), abs(theirs)))


def _is_scored(node: Node) -> bool:
    verdict = node.verdict
    return node.phase is Phase.ENDED and node.ending is Ending.SCORED and bool(verdict and verdict.valid)


def _is_sound(node: Node, run: Run) -> bool:
    if not _is_scored(node) or run.cohort not in node.verdicts or node.commit is None or node.role is Role.MINIMISED:
        return False
    suspect = any(verdict.suspect for verdict in (node.verdict, verdict_in(node, run)) if verdict)
    refused = not node.kept and node.stage in _REFUSED_BY
    return not (suspect or refused or node.finding in ("flag", "hold"))


def _place(state: State, node: Node, run: Run, ranking: Ranking) -> tuple[float, ...]:
    """By what it is shown with: where scores are noisy, a first run may have been lucky."""
    found = headline(state, node, run.cohort)
    metrics = found.metrics if found else verdict_in(node, run).metrics
    return ranking.merits(metrics) if ranking.rule is Rule.PARETO else ranking.standing(metrics)


def _merit(verdict: Verdict, task: str) -> float:
    return -verdict.tasks[task] if verdict.directions.get(task) is Goal.LOWER else verdict.tasks[task]


def _scales(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """How far the scores of a task are apart at most."""
    found: dict[str, list[float]] = {}
    for verdict in verdicts:
        for task, score in verdict.tasks.items():
            found.setdefault(task, []).append(score)
    return {task: max(scores) - min(scores) for task, scores in found.items()}


def _distance(one: Verdict, other: Verdict, scales: Mapping[str, float]) -> list[float]:
    """By what they score task by task; nothing where they share no task."""
    tasks = one.tasks.keys() & other.tasks.keys()
    apart = [min(1.0, abs(one.tasks[task] - other.tasks[task]) / scales[task]) for task in tasks if scales[task]]
    return [math.fsum(apart) / len(tasks)] if tasks else []
