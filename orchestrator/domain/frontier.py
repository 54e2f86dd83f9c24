"""Who is best at something: the Pareto frontier over the tasks of a verdict, and what each on it is best at.

A node that is worse on the whole may solve a task that no other solves; a search that starts from it keeps that. Only
nodes that are best at some task can be chosen, so only those are kept: a better one takes the place of others at once.
"""

import bisect
import random
from collections.abc import Iterable, Mapping

from orchestrator.domain.goodput import comparable
from orchestrator.domain.lines import AnyNode
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
        self._bits: dict[str, int] = {}
        self._merits: dict[str, Merits] = {}
        # What each is best at, a bit a task: thousands that are all best at something are looked through in a moment.
        self._masks: dict[str, int] = {}
        self._order: list[tuple[tuple[int, ...], str]] = []
        for node, merits in nodes:
            self.add(node, merits)

    def add(self, node: str, merits: Merits) -> None:
        """Costs one look at its tasks, and one at the others on the frontier only where it is best at one of them."""
        mask, raised = 0, 0
        for task, value in merits.items():
            best = self._best.get(task, _WORST)
            if value >= best:
                bit = self._bits.setdefault(task, 1 << len(self._bits))
                mask |= bit
                raised |= bit if value > best else 0
        if not mask or self._is_beaten(node, merits, mask):
            return
        self._best |= {task: value for task, value in merits.items() if mask & self._bits.get(task, 0)}
        for other, theirs in list(self._masks.items()):
            left = theirs & ~raised
            if not left or (not left & ~mask and dominates(merits, self._merits[other])):
                self._drop(other)
            elif left != theirs:
                self._masks[other] = left
        self._masks[node], self._merits[node] = mask, dict(merits)
        bisect.insort(self._order, (order_of(node), node))

    def _is_beaten(self, node: str, merits: Merits, mask: int) -> bool:
        """A node that dominates it is best at all that it is best at; so is one with the same scores."""
        for other, theirs in list(self._masks.items()):
            if mask & ~theirs:
                continue
            if dominates(self._merits[other], merits):
                return True
            if self._merits[other] == merits:
                if order_of(other) <= order_of(node):
                    return True
                self._drop(other)
        return False

    def _drop(self, node: str) -> None:
        del self._masks[node], self._merits[node]
        del self._order[bisect.bisect_left(self._order, (order_of(node), node))]

    @property
    def best_at(self) -> dict[str, list[str]]:
        """Each node with the tasks at which nobody is better, nodes and tasks in order."""
        tasks = sorted(self._bits.items())
        return {node: [task for task, bit in tasks if self._masks[node] & bit] for _, node in self._order}

    def draw(self, seed: str) -> str | None:
        """One of them, as likely as the number of tasks it is best at; None where there is none."""
        if not self._order:
            return None
        rng = random.Random(seed)  # noqa: S311 - not for secrets: the seed is in the ledger
        weights = [self._masks[node].bit_count() for _, node in self._order]
        return rng.choices(self._order, weights)[0][1]


def candidate(node: Node, run: Run) -> Merits | None:
    """What a node has to offer; None for a control, and for one that may not be ranked in the run's present cohort."""
    verdict = comparable(node, run) if node.role is not Role.CONTROL and run_of(node.id) == run.number else None
    return merits_of(verdict) if verdict and verdict.tasks else None


def frontier_of(state: State, run: Run | None = None) -> Frontier:
    """Made again from all nodes."""
    run = run or state.run
    counted = state.counted().of_run(run.number)
    # No plain node has tasks, unless it has them in a verdict of another cohort.
    elsewhere = any(sort.verdict and sort.verdict.cohort != run.cohort for sort in counted.plain)
    lines = state.node_lines() if elsewhere else counted.notable
    nodes = (state.nodes[line.id] for line in lines if _may_have_tasks(line, run))
    found = ((node.id, candidate(node, run)) for node in nodes)
    return Frontier((name, merits) for name, merits in found if merits)


def _may_have_tasks(line: AnyNode, run: Run) -> bool:
    """One that was measured elsewhere first may have another verdict here."""
    return line.verdict is not None and (line.verdict.cohort != run.cohort or bool(line.verdict.tasks))
