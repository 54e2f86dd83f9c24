"""How a combination stage comes to its pool."""

from typing import Literal

from orchestrator.domain.events.base import OneEvent
from orchestrator.domain.records import PoolMember, Spent


class MemberIntended(OneEvent):
    """A node of the base stage is about to be run, since what it leaves on this split is not there."""

    kind: Literal["member intended"] = "member intended"
    run: int
    node: str
    split: str


class MemberEnded(OneEvent):
    """What it left, or the fixed code of why it left nothing; then it is no member. `interrupted`: nothing was learnt,
    only spent.
    """

    kind: Literal["member ended"] = "member ended"
    run: int
    node: str
    split: str
    outputs: str | None = None
    bytes: int = 0
    fault: str = ""
    spent: Spent = Spent()
    interrupted: bool = False


class PoolFrozen(OneEvent):
    """What the run's combinations are made of, the first chosen first. It never changes."""

    kind: Literal["pool frozen"] = "pool frozen"
    run: int
    members: tuple[PoolMember, ...]
