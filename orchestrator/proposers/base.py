"""The interface of every proposer: one brief in, proposals out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.change import Tree
from orchestrator.domain.proposal import Proposal, Value


class Exhausted(Exception):
    """There is nothing more to propose. No attempt is charged, and the campaign ends when all others have."""


class Stalled(Exception):
    """The proposer gives no more signs of life; the attempt is refunded and queued again."""


@dataclass(frozen=True)
class Brief:
    """What a proposer is asked for. `number` counts its attempts from 1, `seed` is the same on every resume.

    `parent_params` is what the parent was made with, None for one that was not made from a point.
    """

    node: str
    parent: str
    number: int
    seed: int
    tree: Tree
    parent_params: Mapping[str, Value] | None = None
    count: int = 1


class Proposer(Protocol):
    """`serial` proposers change code and see what came before; parameter proposers run as wide as the backend can.

    `branching` proposers build on earlier nodes; others always start at the root.
    """

    @property
    def serial(self) -> bool: ...

    @property
    def branching(self) -> bool: ...

    def exhausted(self, number: int) -> str | None:
        """Why there is no proposal of that number, where it is known beforehand."""

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """At least one and at most `count` proposals. Raises Exhausted or Stalled."""
