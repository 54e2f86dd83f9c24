"""Changes that people bring themselves; there is nothing to propose on one's own."""

from collections.abc import Sequence

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Exhausted


class Injected:
    serial = True
    branching = True

    def exhausted(self, number: int) -> str | None:
        del number  # what people bring comes through the inbox
        return "no more changes were injected"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        raise Exhausted(f"nothing was injected for {brief.node}")
