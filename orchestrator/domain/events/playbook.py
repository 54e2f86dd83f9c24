"""The playbook: its versions, which of them is used, and which one challenges it."""

from typing import Literal

from orchestrator.domain.events.base import Event, because
from orchestrator.domain.records import PlaybookVersion
from orchestrator.domain.state import State


class PlaybookChanged(Event):
    """A version of what agents work with: `files` is its artifact. `used` says whether it is the present one now.

    One that is not challenges the present one. `level` and `pairs` are fixed here, before anything is measured: how
    likely it may be that it is adopted although it is no better, and after how many pairs of attempts at most.
    """

    kind: Literal["playbook changed"] = "playbook changed"
    version: int
    files: str
    parent: int | None
    by: Literal["default", "task", "person", "evolver"]
    why: str
    used: bool = True
    level: float | None = None
    pairs: int = 0

    def apply(self, state: State, at: str, /) -> None:
        record = PlaybookVersion(
            number=self.version,
            files=self.files,
            parent=self.parent,
            by=self.by,
            why=self.why,
            at=at,
            level=self.level,
            pairs=self.pairs,
        )
        state.new("playbook", str(self.version), record)
        if self.used:
            _use(state, self.version, self.by)
        else:
            state.set_campaign(challenger=self.version, challengers=state.campaign.challengers + 1)

    @property
    def said(self) -> str:
        return f"playbook {self.version} by {self.by}{because(self.why)}"


class PlaybookGiven(Event):
    """Which version an attempt works with, said before it asks a model. `challenger` is the one whose test it is
    part of, None for an attempt that is in none.
    """

    kind: Literal["playbook given"] = "playbook given"
    node: str
    version: int
    challenger: int | None = None

    def apply(self, state: State, _: str, /) -> None:
        state.set_node(self.node, playbook=self.version)
        if self.challenger is not None:
            given = state.playbooks[self.challenger].given
            state.set_playbook(self.challenger, given=(*given, self.node))

    @property
    def said(self) -> str:
        return f"{self.node} works with playbook {self.version}"


class PlaybookUsed(Event):
    """A version that was there becomes the present one."""

    kind: Literal["playbook used"] = "playbook used"
    version: int
    by: Literal["person", "evolver"]
    why: str

    def apply(self, state: State, _: str, /) -> None:
        if self.version == state.campaign.challenger:
            state.set_playbook(self.version, fate=f"used: {self.why}")
            state.set_campaign(challenger=None)
        _use(state, self.version, self.by)

    @property
    def said(self) -> str:
        return f"playbook {self.version} is used from now on{because(self.why)}"


def _use(state: State, version: int, by: str) -> None:
    """What was being tried was tried beside the version of before: there is nothing left to compare it with."""
    if (challenger := state.campaign.challenger) is not None:
        state.set_playbook(challenger, fate=f"not used: set aside for version {version}, by {by}")
    state.set_campaign(playbook=version, challenger=None)


class PlaybookDiscarded(Event):
    """A challenger that was not shown to be better; it stays in the log."""

    kind: Literal["playbook discarded"] = "playbook discarded"
    version: int
    why: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_playbook(self.version, fate=f"not used: {self.why}")
        state.set_campaign(challenger=None)

    @property
    def said(self) -> str:
        return f"playbook {self.version} is not used{because(self.why)}"
