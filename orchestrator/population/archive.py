"""A grid of unlike solutions (MAP-Elites): each cell keeps its best, and every cell is drawn alike."""

import random
from collections.abc import Mapping

from orchestrator.population.base import Member, ParentContext
from orchestrator.task import ArchiveSpec, FeatureSpec

Cell = tuple[int, ...]
MOST_CELLS = 1024
_AXES = 4


class Archive:
    """Over features that the task names, or else over its tasks: worse, like or better than the baseline in each. More
    than four tasks are put together in four groups, in which most of them are.

    Of more cells than are kept, those stay whose best stands highest.
    """

    def __init__(self, context: ParentContext) -> None:
        self._spec = context.archive or ArchiveSpec()
        self._baseline = context.baseline.tasks if context.baseline else {}
        self.cells: dict[Cell, Member] = {}

    def add(self, member: Member) -> None:
        cell = self._cell_of(member)
        if cell is None:
            return
        held = self.cells.get(cell)
        if held is None or member.place > held.place:
            self.cells[cell] = member
        if len(self.cells) > MOST_CELLS:
            del self.cells[min(self.cells, key=lambda it: self.cells[it].place)]

    def draw(self, seed: str) -> str | None:
        if not self.cells:
            return None
        rng = random.Random(seed)  # noqa: S311 - not for secrets: the seed is in the ledger
        return self.cells[rng.choice(sorted(self.cells))].node

    def _cell_of(self, member: Member) -> Cell | None:
        """None for one of which the judge does not say where it belongs."""
        if not self._spec.features:
            return _beside(member.tasks, self._baseline)
        told = {**member.tasks, **member.metrics}
        if not self._spec.features.keys() <= told.keys():
            return None
        return tuple(_bin(feature, told[name]) for name, feature in sorted(self._spec.features.items()))


def _bin(feature: FeatureSpec, value: float) -> int:
    share = (value / 2 - feature.low / 2) / (feature.high / 2 - feature.low / 2)
    return min(feature.bins - 1, max(0, int(min(1.0, max(0.0, share)) * feature.bins)))


def _beside(tasks: Mapping[str, float], baseline: Mapping[str, float]) -> Cell | None:
    common = sorted(tasks.keys() & baseline.keys())
    if not common:
        return None
    signs = [(tasks[name] > baseline[name]) - (tasks[name] < baseline[name]) for name in common]
    size = -(-len(signs) // _AXES)
    sums = [sum(signs[at : at + size]) for at in range(0, len(signs), size)]
    return tuple((it > 0) - (it < 0) for it in sums)
