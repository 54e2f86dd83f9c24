"""One more run of the root, which tells of its own code."""

from typing import Literal

from orchestrator.domain.events.base import Event, because, cost
from orchestrator.domain.records import Spent
from orchestrator.domain.state import State


class ProfileIntended(Event):
    """The root of a run is about to run once more, under a profile. It is no trial, and has no score."""

    kind: Literal["profile intended"] = "profile intended"
    run: int

    def apply(self, state: State, at: str, /) -> None:
        state.set_run(self.run, profiling=at)

    @property
    def said(self) -> str:
        return f"the root of run {self.run} is run for a profile"


class ProfileTaken(Event):
    """The artifact with what it told, or why there is none; it is not asked for again. `interrupted`: nothing was
    learnt, only spent.
    """

    kind: Literal["profile taken"] = "profile taken"
    run: int
    profile: str | None = None
    why: str = ""
    spent: Spent = Spent()
    interrupted: bool = False

    def apply(self, state: State, at: str, /) -> None:
        """It is booked by the settling of its hold, in the same transaction."""
        state.spend("", self.spent, at)
        if self.interrupted:
            state.set_run(self.run, profiling="")
        else:
            state.set_run(self.run, profiling="", profile=self.profile, profiled=True)

    @property
    def said(self) -> str:
        if self.interrupted:
            return f"the profile of run {self.run} was ended by us{cost(self.spent)}"
        told = "has a profile" if self.profile else "goes on without a profile"
        return f"run {self.run} {told}{because(self.why)}{cost(self.spent)}"
