"""Points drawn at random. The same seed and number give the same point, so that a resume repeats nothing."""

import random
from collections.abc import Mapping, Sequence

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Computed
from orchestrator.proposers.space import random_point, resampled, shown_point
from orchestrator.task import Parameter


class Random(Computed):
    """On the root: uniform over the space. On another node, where it branches: some of its parameters drawn again."""

    serial = False

    def __init__(self, space: Mapping[str, Parameter], *, branching: bool = True) -> None:
        self._space = space
        self.branching = branching

    def exhausted(self, number: int) -> str | None:
        del number  # a point can always be drawn
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        return [self._one(brief, draft) for draft in range(brief.count)]

    def _one(self, brief: Brief, draft: int) -> Proposal:
        # Not for secrets: the seed is in the ledger.
        again = f"/{brief.again}" if brief.again else ""
        rng = random.Random(f"{brief.seed}/{brief.number}/{draft}{again}")  # noqa: S311
        if self.branching and brief.parent_params is not None:
            point = resampled(self._space, rng, brief.parent_params)
            return Proposal(operator="resample", description=shown_point(point), params=point)
        point = random_point(self._space, rng)
        return Proposal(operator="random", description=shown_point(point), params=point)
