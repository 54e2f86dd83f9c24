"""What a candidate must stand before it is kept: tests against the champion, guards, and the held-out split."""

from typing import Literal

from orchestrator.domain import figures
from orchestrator.domain.events.base import Event, because, cost
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Certification, Guard, HeldOut, Spent
from orchestrator.domain.state import State


class CertificationOpened(Event):
    """A test whether the node is better than the champion. Its level, and how many blocks it has at most, are fixed
    before the first of them is run; 0 blocks are those of a champion that was measured beforehand. With `both` it may
    also prove the node worse.
    """

    kind: Literal["certification opened"] = "certification opened"
    node: str
    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float
    blocks: int = 0
    both: bool = False

    def apply(self, state: State, _: str, /) -> None:
        test = Certification(
            champion=self.champion,
            cohort=self.cohort,
            number=self.number,
            reference=self.reference,
            against=self.against,
            level=self.level,
            since=state.nodes[self.node].trials,
            blocks=self.blocks,
            both=self.both,
        )
        state.set_node(self.node, certification=test)
        champion = state.nodes[self.champion]
        state.set_node(champion.id, challenged={**champion.challenged, self.cohort: self.against})
        state.set_campaign(tests=self.number)

    @property
    def said(self) -> str:
        return f"{self.node} is tested against {self.champion} (test {self.number}, level {self.level:.3g})"


class GuardIntended(Event):
    """`draft` is the one whose files are looked at, 0 for the node's candidate."""

    kind: Literal["guard intended"] = "guard intended"
    node: str
    guard: str
    draft: int = 0

    def apply(self, state: State, at: str, /) -> None:
        state.set_node(self.node, guarding=self.guard, guarding_since=at)

    @property
    def said(self) -> str:
        return f"{self.node} is checked by the guard {self.guard}"


class GuardEnded(Event):
    kind: Literal["guard ended"] = "guard ended"
    node: str
    guard: str
    passed: bool
    reason: str = ""
    spent: Spent = Spent()
    interrupted: bool = False
    draft: int = 0

    def apply(self, state: State, at: str, /) -> None:
        node, name = state.nodes[self.node], f"{self.node}#{self.draft}"
        learnt = {} if self.interrupted else {self.guard: self.passed}
        if draft := state.draft(name) if self.draft else None:
            state.set_draft(name, guarded={**draft.guarded, **learnt})
            learnt = {}
        state.set_node(self.node, guarding=None, guarded={**node.guarded, **learnt})
        state.spend(self.node, self.spent, at)

    @property
    def said(self) -> str:
        passed = "passes" if self.passed else "does not pass"
        return f"{self.node} {passed} the guard {self.guard}{because(self.reason)}"


class GuardAdded(Event):
    kind: Literal["guard added"] = "guard added"
    node: str
    guard: Guard

    def apply(self, state: State, _: str, /) -> None:
        others = tuple(guard for guard in state.nodes[self.node].guards if guard.name != self.guard.name)
        state.set_node(self.node, guards=(*others, self.guard))
        for name in list(state.unfinished):
            # One of the same name that passed before was another one.
            if self.guard.name in (passed := state.nodes[name].guarded):
                state.set_node(name, guarded={guard: it for guard, it in passed.items() if guard != self.guard.name})

    @property
    def said(self) -> str:
        return f"{self.node} and all below it get the guard {self.guard.name}"


class HeldOutIntended(Event):
    """The held-out split is asked about a node. It counts from here on, whatever becomes of it."""

    kind: Literal["held-out intended"] = "held-out intended"
    node: str
    query: int
    queries: int

    def apply(self, state: State, at: str, /) -> None:
        state.set_node(self.node, asking=self.query, asking_since=at)
        state.set_campaign(asked=state.campaign.asked + 1, askable=self.queries)

    @property
    def said(self) -> str:
        return f"{self.node} is run on the held-out split ({self.query} of {self.queries})"


class HeldOutAsked(Event):
    """What the ladder says, never the score itself: whether it is better, and the rounded value that it releases.

    `worse` is None unless that was asked in the place of whether it is better; then nothing new is released.
    `cohort` is what the trial was measured on; `interrupted`: nothing was learnt, only asked and spent.
    """

    kind: Literal["held-out asked"] = "held-out asked"
    node: str
    query: int
    cohort: str = ""
    better: bool = False
    worse: bool | None = None
    released: float | None = None
    step: float = 0.0
    fault: str = ""
    spent: Spent = Spent()
    interrupted: bool = False

    def apply(self, state: State, at: str, /) -> None:
        node = state.nodes[self.node]
        state.spend(self.node, self.spent, at)
        if self.interrupted:
            state.set_node(self.node, asking=None)
            return
        answer = HeldOut(
            query=self.query,
            better=self.better,
            worse=self.worse,
            released=self.released,
            step=self.step,
            fault=self.fault,
        )
        # The first one of a cohort stands, as with verdicts: where the baseline began is what drift is measured from.
        state.set_node(self.node, asking=None, heldout={self.cohort: answer, **node.heldout})
        run = state.runs[str(run_of(self.node))]
        if self.released is not None:
            state.set_run(run.number, ladders={**run.ladders, self.cohort: self.released})

    @property
    def said(self) -> str:
        asked = f"{self.node} on the held-out split (query {self.query})"
        if self.interrupted:
            return f"{asked}: interrupted, nothing was learnt"
        if self.fault:
            return f"{asked}: no score ({self.fault})"
        if self.released is None:
            return f"{asked}: not comparable"
        told = "better" if self.better else "not better"
        return f"{asked}: {told}; the ladder stands at {figures.score(self.released)}{cost(self.spent)}"
