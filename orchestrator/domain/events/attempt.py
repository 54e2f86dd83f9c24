"""An attempt from its opening to its ending."""

from typing import Literal

from orchestrator.domain.ending import Ending
from orchestrator.domain.events.base import Event, because
from orchestrator.domain.node import count_key, dropped_key, path_to, run_of
from orchestrator.domain.proposal import Drawn
from orchestrator.domain.records import Node, Phase, Role, Spent
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Stage


class AttemptOpened(Event):
    """`island` is the population that it belongs to, 0 where there is one, or where it belongs to all. `drawn` is what
    was chosen to begin its branch. `order` is the so-manieth opening of the campaign that it is, since clocks go back;
    older ledgers do not say.
    """

    kind: Literal["attempt opened"] = "attempt opened"
    node: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0
    injection: int | None = None
    island: int = 0
    drawn: Drawn | None = None
    order: int = 0

    def apply(self, state: State, at: str, /) -> None:
        node = Node(
            id=self.node,
            parent=self.parent,
            role=self.role,
            number=self.number,
            branch=self.branch,
            step=self.step,
            injection=self.injection,
            island=self.island,
            drawn=self.drawn,
            opened_at=at,
            opened_order=self.order,
        )
        state.new("node", self.node, node)
        state.index(node, new=True)
        now = state.campaign
        role = count_key(run_of(self.node), self.role)
        counts = {**now.counts, role: now.counts.get(role, 0) + 1}
        waiting = tuple(number for number in now.waiting if number != self.injection)
        state.set_campaign(
            counts=counts,
            branches=max(now.branches, self.branch),
            waiting=waiting,
            openings=self.order or now.openings,
        )

    @property
    def said(self) -> str:
        return f"{self.node} opened ({self.role} {self.number}{f', island {self.island}' if self.island else ''})"


class KillIntended(Event):
    kind: Literal["kill intended"] = "kill intended"
    node: str
    why: str

    @property
    def said(self) -> str:
        return f"{self.node} is killed{because(self.why)}"


class KillConfirmed(Event):
    kind: Literal["kill confirmed"] = "kill confirmed"
    node: str

    @property
    def said(self) -> str:
        return f"{self.node} is dead"


class AttemptEnded(Event):
    """`stage` had the last word on a candidate with a score; older ledgers do not say. `undecided`: it is not kept
    since it could not be compared, which says nothing about the candidate. `cost` is what was spent on it by then; what
    arrives later does not change what a search learnt from it. `drawn` is what was chosen where no proposal came of it.
    `order` is the so-manieth ending of the campaign that it is, since clocks go back; older ledgers do not say.
    """

    kind: Literal["attempt ended"] = "attempt ended"
    node: str
    ending: Ending
    kept: bool = False
    why: str = ""
    stage: Stage | None = None
    undecided: bool = False
    cost: Spent | None = None
    drawn: Drawn | None = None
    order: int = 0

    def apply(self, state: State, at: str, /) -> None:
        node = state.nodes[self.node]
        state.set_node(
            self.node,
            phase=Phase.ENDED,
            ended_at=at,
            ended_order=self.order,
            ended_trials=node.trials,
            ending=self.ending,
            kept=self.kept,
            why=self.why,
            stage=self.stage,
            undecided=self.undecided,
            cost=self.cost,
            drawn=self.drawn or node.drawn,
        )
        if self.order:
            state.set_campaign(endings=self.order)
        if self.ending.charged and node.role in ("search", "injected"):
            kept_none = 0 if self.kept else state.campaign.since_improvement + 1
            state.set_campaign(since_improvement=kept_none)
            count_no_free(state)
        if self.ending is Ending.CANCELLED:
            counts, dropped = state.campaign.counts, dropped_key(run_of(self.node), node.role)
            state.set_campaign(counts={**counts, dropped: counts.get(dropped, 0) + 1})

    @property
    def said(self) -> str:
        return f"{self.node} {self.ending}, {'kept' if self.kept else 'not kept'}{because(self.why)}"


class AttemptRequeued(Event):
    """A free ending; `not_before` is when it may be tried again, `lost` the micro-dollars that nobody pays for.

    `provider` is the one whose doing it was: then it does not count against the attempt. `outage`: it came while the
    breaker was open, so it counts for nothing at all. `slept_s`: a standstill interrupted it, and so long the session
    had stood still in all by then; those with one figure are one free ending.
    """

    kind: Literal["attempt requeued"] = "attempt requeued"
    node: str
    ending: Ending
    why: str
    not_before: str
    provider: str = ""
    outage: bool = False
    lost: int = 0
    slept_s: float = 0.0

    def apply(self, state: State, _: str, /) -> None:
        counts = not self.provider and not self.outage
        state.set_node(
            self.node,
            phase=Phase.QUEUED,
            stalls=state.nodes[self.node].stalls + (self.ending is Ending.STALLED and counts),
            not_before=self.not_before,
            ending=self.ending,
            why=self.why,
        )
        if counts:
            _count_refund(state, self.node, self.ending)
        _count_free(state, self.node, self.ending, self.lost, self.slept_s, counts=not self.outage)

    @property
    def said(self) -> str:
        return f"{self.node} {self.ending}, queued again{because(self.why)}"


class AttemptQuarantined(Event):
    kind: Literal["attempt quarantined"] = "attempt quarantined"
    node: str
    ending: Ending
    why: str
    lost: int = 0

    def apply(self, state: State, _: str, /) -> None:
        stalls = state.nodes[self.node].stalls + (self.ending is Ending.STALLED)
        state.set_node(self.node, phase=Phase.QUARANTINED, stalls=stalls, ending=self.ending, why=self.why)
        _count_refund(state, self.node, self.ending)
        _count_free(state, self.node, self.ending, self.lost, slept_s=0.0)

    @property
    def said(self) -> str:
        return f"{self.node} {self.ending}, quarantined{because(self.why)}"


def _count_refund(state: State, node: str, ending: Ending) -> None:
    """An interruption is our own doing, and what is held is not run again: neither can be farmed, so none counts."""
    if ending not in (Ending.INTERRUPTED, Ending.HELD):
        refunds = state.campaign.refunds
        state.set_campaign(refunds={**refunds, node: refunds.get(node, 0) + 1})


def _count_free(state: State, node: str, ending: Ending, lost: int, slept_s: float, *, counts: bool = True) -> None:
    """However it came about: a campaign must not go on for ever without using up an attempt. A standstill interrupts
    all that run, and counts once.
    """
    for doubt in [it for it in state.doubts.values() if it.node == node and it.bounded is None]:
        state.set_doubt(doubt.chamber, bounded=counts and lost > 0)
    if not counts:
        return
    now = state.campaign
    stood_still = slept_s > 0 and slept_s != now.slept_s
    counts = stood_still or ending not in (Ending.INTERRUPTED, Ending.HELD)
    state.set_campaign(free=now.free + counts, free_usd=now.free_usd + lost, slept_s=slept_s or now.slept_s)


def count_no_free(state: State) -> None:
    """From here on free endings are counted anew."""
    state.set_campaign(free=0, free_usd=0)
    for doubt in state.doubts.values():
        if doubt.bounded:
            state.set_doubt(doubt.chamber, bounded=False)


class AttemptReleased(Event):
    """A person, or the scheduler when its time has come, lets a waiting attempt go on with a new reservation."""

    kind: Literal["attempt released"] = "attempt released"
    node: str
    by: str

    def apply(self, state: State, _: str, /) -> None:
        lineage = path_to(self.node)
        refunds = {name: count for name, count in state.campaign.refunds.items() if name not in lineage}
        state.set_campaign(refunds=refunds)
        state.set_node(self.node, phase=Phase.QUEUED, stalls=0, not_before="", ending=None, kept=False, why=self.by)
        # A person has looked at what the verifier held; it is not asked about these drafts again.
        held = [draft for draft in state.drafts(self.node) if draft.finding == "hold"]
        for draft in held:
            state.set_draft(f"{self.node}#{draft.number}", finding="released")
        if held:
            state.set_node(self.node, finding="released")

    @property
    def said(self) -> str:
        return f"{self.node} released by {self.by}"


class AttemptResumed(Event):
    """A queued attempt goes on, with a new reservation."""

    kind: Literal["attempt resumed"] = "attempt resumed"
    node: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_node(self.node, phase=Phase.OPEN, take=state.nodes[self.node].take + 1, ending=None, why="")

    @property
    def said(self) -> str:
        return f"{self.node} goes on"
