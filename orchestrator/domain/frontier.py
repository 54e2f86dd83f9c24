"""Who is best at something: the Pareto frontier over the tasks of a verdict, and what each on it is best at.

A node that is worse on the whole may solve a task that no other solves; a search that starts from it keeps that. Only
nodes that are best at some task can be chosen, so only those are kept: a better one takes the place of others at once.
"""

import random
from collections.abc import Iterable, Mapping

from orchestrator.domain.goodput import comparable
from orchestrator.domain.metric import Goal
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict

_WORST = float("-inf")
Merits = Mapping[str, float]


def merits_of(verdict: Verdict) -> dict[str, float]:
    """The scores of single tasks, turned so that more is better."""
    lower = {name for name, goal in verdict.directions.items() if goal is Goal.LOWER}
    return {name: -value if name in lower else value for name, value in verdict.tasks.items()}


def dominates(one: Merits, other: Merits) -> bool:
    """As good at every task and better at one. A task that is missing counts as the worst there is."""
    as_good = all(one.get(task, _WORST) >= value for task, value in other.items())
    return as_good and any(value > other.get(task, _WORST) for task, value in one.items())


class Frontier:
    """Grows by one node at a time, and is the same in whatever order they come.

    Of several with the very same scores the first one counts: a change without effect gains no weight for its parent.
    """

    def __init__(self, nodes: Iterable[tuple[str, Merits]] = ()) -> None:
        self._best: dict[str, float] = {}
        self._holders: dict[str, Merits] = {}
        for node, merits in nodes:
            self.add(node, merits)

    def add(self, node: str, merits: Merits) -> None:
        """Costs one look at its tasks, and more only where it is best at one of them."""
        if not any(value >= self._best.get(task, _WORST) for task, value in merits.items()):
            return
        for other, held in list(self._holders.items()):
            if dominates(held, merits):
                return
            if held == merits:
                if order_of(other) <= order_of(node):
                    return
                del self._holders[other]
        for task, value in merits.items():
            self._best[task] = max(value, self._best.get(task, _WORST))
        self._holders[node] = dict(merits)
        for other, held in list(self._holders.items()):
            if dominates(merits, held) or not self._is_best(held):
                del self._holders[other]

    def _is_best(self, merits: Merits) -> bool:
        return any(value == self._best[task] for task, value in merits.items())

    @property
    def best_at(self) -> dict[str, list[str]]:
        """Each node with the tasks at which nobody is better, nodes and tasks in order."""
        return {
            node: sorted(task for task, value in self._holders[node].items() if value == self._best[task])
            for node in sorted(self._holders, key=order_of)
        }

    def draw(self, seed: str) -> str | None:
        """One of them, as likely as the number of tasks it is best at; None where there is none."""
        found = self.best_at
        if not found:
            return None
        rng = random.Random(seed)  # noqa: S311 - not for secrets: the seed is in the ledger
        return rng.choices(list(found), [len(tasks) for tasks in found.values()])[0]


def candidate(node: Node, run: Run) -> Merits | None:
    """What a node has to offer; None for a control, and for one that may not be ranked in the run's present cohort."""
    verdict = comparable(node, run) if node.role is not Role.CONTROL and run_of(node.id) == run.number else None
    return merits_of(verdict) if verdict and verdict.tasks else None


def frontier_of(state: State, run: Run | None = None) -> Frontier:
    """Made anew from all nodes."""
    run = run or state.run
    found = ((node.id, candidate(node, run)) for node in state.nodes.values())
    return Frontier((name, merits) for name, merits in found if merits)
