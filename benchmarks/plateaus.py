"""Steps that change nothing by themselves: how many attempts a search needs where a gain takes several changes at once.

A row of switches in blocks; a block counts when all of it is on, and an attempt turns one switch, drawn at random.
Where a block is one switch, there is nothing to walk over.
"""

import random
import statistics
from types import SimpleNamespace
from typing import cast

from benchmarks.figure import Figure
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.loop.openings import next_opening

ONE = Ranking((Metric(),))
BLOCKS, DEPTH, MOST, WALK = 6, 5, 3000, 20


class Search:
    """One at a time, branches of DEPTH steps, by the loop's own rule of where to build on."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._rng = size, random.Random(f"plateaus/{size}/{seed}")
        self._switches = {"1": (False,) * (BLOCKS * size)}
        self._run = SimpleNamespace(root="1", cohort="c", islands=1)
        self._campaign = SimpleNamespace(branches=0, since_improvement=0)
        self._nodes = {"1": self._node("1", None, 0, 0)}
        self._branches: dict[int, list[str]] = {}
        self._champion = self._nodes["1"]

    def attempts(self, walk: int | None) -> int | None:
        """How many until all blocks are on; None where that takes more than MOST."""
        for number in range(1, MOST + 1):
            self._attempt(number, walk)
            if self._score(self._champion.id) == BLOCKS:
                return number
        return None

    def _attempt(self, number: int, walk: int | None) -> None:
        state = SimpleNamespace(
            run=self._run,
            campaign=self._campaign,
            nodes=self._nodes,
            branches=self._branches,
            champion=lambda _: self._champion,
        )
        opening = next_opening(cast(State, state), ONE, branching=True, width=1, walk=walk)
        if opening is None:
            raise AssertionError("nothing runs, so there is an opening")
        switches = list(self._switches[opening.parent])
        at = self._rng.randrange(len(switches))
        switches[at] = not switches[at]
        name = f"{opening.parent}.{number}"
        self._switches[name] = tuple(switches)
        self._nodes[name] = node = self._node(name, opening.parent, opening.branch, opening.step)
        self._branches.setdefault(opening.branch, []).append(name)
        self._campaign.branches = max(self._campaign.branches, opening.branch)
        if opening.step == DEPTH:
            del self._branches[opening.branch]
        better = self._score(name) > self._score(self._champion.id)
        self._champion = node if better else self._champion
        self._campaign.since_improvement = 0 if better else self._campaign.since_improvement + 1

    def _node(self, name: str, parent: str | None, branch: int, step: int) -> Node:
        metrics = {"score": float(self._score(name))}
        verdict = Verdict(metrics=metrics, tier=Tier.DATA, mode=Mode.SUBMIT, cohort="c")
        return Node(
            id=name,
            parent=parent,
            role=Role.SEARCH,
            number=0,
            branch=branch,
            step=step,
            phase=Phase.ENDED,
            verdict=verdict,
        )

    def _score(self, name: str) -> int:
        switches = self._switches[name]
        return sum(all(switches[at : at + self._size]) for at in range(0, len(switches), self._size))


async def measure(seeds: int) -> list[Figure]:
    figures: list[Figure] = []
    for size, goal in ((1, "<= 1.1"), (2, "<= 1"), (3, "<= 0.5")):
        walking, standing = (
            [Search(size, seed).attempts(walk) or MOST for seed in range(seeds)] for walk in (WALK, None)
        )
        medians = statistics.median(walking), statistics.median(standing)
        reached = f"{sum(it < MOST for it in walking)} and {sum(it < MOST for it in standing)} of {seeds} get there"
        said = f"blocks of {size}: attempts, {medians[0]:g}, with one neutral step {medians[1]:g} ({reached}): ratio"
        figures.append(Figure(said, medians[0] / medians[1], "x", goal))
    return figures
