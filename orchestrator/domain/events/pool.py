"""How a combination stage comes to its pool."""

from typing import Literal

from orchestrator.domain.events.base import Event, cost
from orchestrator.domain.records import MemberAtWork, MemberOutputs, PoolMember, Spent
from orchestrator.domain.state import State


class MemberIntended(Event):
    """A node of the base stage is about to be run, since what it leaves on this split is not there."""

    kind: Literal["member intended"] = "member intended"
    run: int
    node: str
    split: str

    def apply(self, state: State, at: str, /) -> None:
        state.set_run(self.run, member=MemberAtWork(node=self.node, split=self.split, since=at))

    @property
    def said(self) -> str:
        return f"{self.node} is run for the pool of run {self.run} (split {self.split})"


class MemberEnded(Event):
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

    def apply(self, state: State, at: str, /) -> None:
        """It is booked by the settling of its hold, in the same transaction."""
        state.set_run(self.run, member=None)
        state.spend("", self.spent, at)
        if not self.interrupted:
            left = MemberOutputs(outputs=self.outputs, bytes=self.bytes, fault=self.fault)
            known = state.runs[str(self.run)].member_outputs
            state.set_run(self.run, member_outputs={**known, f"{self.node}/{self.split}": left})

    @property
    def said(self) -> str:
        fault = f"cannot be in the pool: {self.fault}" if self.fault else "is over"
        left = "ended by us" if self.interrupted else fault
        return f"{self.node} on the split {self.split} {left}{cost(self.spent)}"


class PoolFrozen(Event):
    """What the run's combinations are made of, the first chosen first. It never changes."""

    kind: Literal["pool frozen"] = "pool frozen"
    run: int
    members: tuple[PoolMember, ...]

    def apply(self, state: State, _: str, /) -> None:
        state.set_run(self.run, pool=self.members)

    @property
    def said(self) -> str:
        return f"pool of run {self.run}: {', '.join(it.node for it in self.members)}"
