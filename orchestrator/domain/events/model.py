"""Models and those who work with them: calls, agents, stalls and reviews."""

from typing import Literal

from orchestrator.domain import figures
from orchestrator.domain.events.base import Event, because, cost
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Asked, OpenCall, Spent
from orchestrator.domain.state import State

# From the best to the worst.
_FINDINGS = ("pass", "unreviewed", "released", "flag", "hold")


class ModelCallIntended(Event):
    """A call to a model is about to be made; `worst` is what it can cost. `node` is empty for work of no attempt.

    `configuration` is a short name of what shapes the work of the one who asks; empty where older records do not tell.
    """

    kind: Literal["model call intended"] = "model call intended"
    node: str
    call: str
    role: ModelRole
    model: str
    worst: Spent
    configuration: str = ""

    def apply(self, state: State, _: str, /) -> None:
        state.new("call", self.call, OpenCall(node=self.node, role=self.role, model=self.model, worst=self.worst))
        state.set_campaign(calls=state.campaign.calls + 1)

    @property
    def said(self) -> str:
        return f"{self.node or self.role}: call {self.call} of {self.model}"


class ModelCallEnded(Event):
    """What it did cost: as the provider counted it, or the worst case where no last word came."""

    kind: Literal["model call ended"] = "model call ended"
    node: str
    call: str
    role: ModelRole
    model: str
    ending: CallEnding
    tokens: Tokens
    spent: Spent
    first_s: float | None = None
    seconds: float = 0.0

    def apply(self, state: State, _: str, /) -> None:
        state.drop("call", self.call)
        known, key = state.campaign.asked_models, f"{self.role} {self.model}"
        old = known.get(key, Asked())
        now = Asked(calls=old.calls + 1, spent=old.spent + self.spent, tokens=old.tokens + self.tokens)
        state.set_campaign(asked_models={**known, key: now})
        if not self.node:
            state.set_campaign(unbooked=state.campaign.unbooked + self.spent)
            return
        node = state.nodes[self.node]
        paid = {**node.paid, self.role: node.paid.get(self.role, 0) + self.spent.microdollars}
        state.set_node(self.node, spent=node.spent + self.spent, tokens=node.tokens + self.tokens, paid=paid)

    @property
    def said(self) -> str:
        told = f"{self.ending}, {self.tokens.total:,} tokens{cost(self.spent)}"
        return f"{self.node or self.role}: call {self.call} of {self.model} {told}"


class AgentIntended(Event):
    """A chamber for a coding agent is about to be opened. `configuration` is a short name of all that shapes it."""

    kind: Literal["agent intended"] = "agent intended"
    node: str
    agent: str
    configuration: str

    def apply(self, state: State, at: str, /) -> None:
        state.set_node(self.node, agent=self.agent, agent_since=at)

    @property
    def said(self) -> str:
        return f"{self.node}: the agent {self.agent} gets a chamber ({self.configuration})"


class AgentEnded(Event):
    """`ending` is how its chamber ended, `why` one line; `left_out` counts files that it may not change."""

    kind: Literal["agent ended"] = "agent ended"
    node: str
    ending: str
    why: str = ""
    log: str | None = None
    left_out: int = 0
    spent: Spent = Spent()
    interrupted: bool = False

    def apply(self, state: State, _: str, /) -> None:
        node = state.nodes[self.node]
        log = node.agent_log if self.interrupted else self.log
        state.set_node(self.node, agent=None, agent_log=log, spent=node.spent + self.spent)

    @property
    def said(self) -> str:
        return f"{self.node}: the agent ended as {self.ending}{because(self.why)}"


class StallFound(Event):
    """An agent gave no sign of life, or went in circles; recorded with the refund. `lost` is what it had spent.

    `cause` is the detector's code, `after_s` how long it took to notice, `saved_s` what a plain idle time-out of
    1,200 s would have waited longer.
    """

    kind: Literal["stall found"] = "stall found"
    node: str
    agent: str
    model: str
    configuration: str
    cause: str
    detail: str = ""
    after_s: float = 0.0
    saved_s: float = 0.0
    lost: Spent = Spent()

    @property
    def said(self) -> str:
        lost = f"; booked as lost: {figures.spent(self.lost)}" if self.lost != Spent() else ""
        stalled = f"{self.agent} stalled ({self.cause}) after {self.after_s:.0f} s"
        return f"{self.node}: {stalled}{because(self.detail)}{lost}"


class Reviewed(Event):
    """What a verifier made of a change before a trial was paid for. It can hold or flag, and never scores.

    `unreviewed`: nobody could be asked, or nothing was left to ask with; the attempt goes on.
    """

    kind: Literal["reviewed"] = "reviewed"
    node: str
    draft: int
    finding: Literal["pass", "flag", "hold", "unreviewed"]
    reasons: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_draft(f"{self.node}#{self.draft}", finding=self.finding, reasons=self.reasons)
        found = [draft.finding for draft in state.drafts(self.node) if draft.finding]
        state.set_node(self.node, finding=max(found, key=_FINDINGS.index))

    @property
    def said(self) -> str:
        found = self.finding if self.finding == "unreviewed" else f"the verifier says {self.finding}"
        return f"{self.node} draft {self.draft}: {found}{because(self.reasons)}"
