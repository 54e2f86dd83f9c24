"""Every point of the space, once, in order; where the task tunes, several of them in one attempt."""

from collections.abc import Mapping, Sequence

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Computed, Exhausted
from orchestrator.proposers.space import grid, shown_point
from orchestrator.task import Parameter


class Grid(Computed):
    serial = False
    branching = False

    def __init__(self, space: Mapping[str, Parameter], per_attempt: int = 1) -> None:
        self._grid = grid(space)
        self._size = self._grid.size
        self._per_attempt = per_attempt

    def exhausted(self, number: int) -> str | None:
        if (number - 1) * self._per_attempt < self._size:
            return None
        return f"all {self._size} points of the grid are tried"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if why := self.exhausted(brief.number):
            raise Exhausted(why)
        first = (brief.number - 1) * self._per_attempt
        wanted = range(first, min(first + self._per_attempt, self._size))
        points = [self._grid.at(index) for index in wanted]
        return [Proposal(operator="grid", description=shown_point(point), params=point) for point in points]
