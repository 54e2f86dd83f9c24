"""What is proposed for a node, and which of it becomes the node's candidate and the champion."""

from typing import Literal

from orchestrator.domain.events.base import Event, because
from orchestrator.domain.proposal import Drawn, Value
from orchestrator.domain.records import Draft, LikenessRecord, Minimal
from orchestrator.domain.state import State


class Proposed(Event):
    """`tried` marks what an agent only tuned and did not hand in; `origin` is the spare draft of an earlier node that
    this one was asked for together with, like "1.3#2"; `playbook` is the version that it was made with, `steered` how
    many of a person's instructions were known by then. `drawn` is what was chosen by chance to make it.
    """

    kind: Literal["proposed"] = "proposed"
    node: str
    draft: int
    operator: str
    description: str
    params: dict[str, Value] | None = None
    model: str | None = None
    change: str | None = None
    tree: str | None = None
    refused: str | None = None
    playbook: int | None = None
    tried: bool = False
    origin: str | None = None
    steered: int = 0
    known_as: str | None = None
    likeness: LikenessRecord | None = None
    drawn: Drawn | None = None

    def apply(self, state: State, _: str, /) -> None:
        draft = Draft(
            node=self.node,
            number=self.draft,
            operator=self.operator,
            description=self.description,
            params=self.params,
            model=self.model,
            change=self.change,
            tree=self.tree,
            refused=self.refused,
            playbook=self.playbook,
            tried=self.tried,
            origin=self.origin,
            steered=self.steered,
            known_as=self.known_as,
            likeness=self.likeness,
            drawn=self.drawn,
        )
        state.new("draft", f"{self.node}#{self.draft}", draft)
        state.set_node(
            self.node,
            drafts=self.draft,
            operator=self.operator,
            description=self.description,
            params=self.params,
            drawn=self.drawn,
            playbook=state.nodes[self.node].playbook if self.playbook is None else self.playbook,
        )

    @property
    def said(self) -> str:
        by = f" by {self.model}" if self.model else ""
        refused = f"; refused: {self.refused}" if self.refused else ""
        return f"{self.node} draft {self.draft}, {self.operator}{by}{because(self.description)}{refused}"


class OffersCounted(Event):
    """Of what one asking brought: how many changes, how many different new trees, how many that did not apply, and how
    many that are too much alike to be run.
    """

    kind: Literal["offers counted"] = "offers counted"
    node: str
    offered: int
    distinct: int
    refused: int
    alike: int = 0

    def apply(self, state: State, _: str, /) -> None:
        now = state.campaign
        state.set_campaign(
            offered=now.offered + self.offered,
            distinct=now.distinct + self.distinct,
            unfit=now.unfit + self.refused,
            alike=now.alike + self.alike,
        )

    @property
    def said(self) -> str:
        return f"{self.node}: {self.distinct} of {self.offered} offers are new"


class Promoted(Event):
    """The draft that becomes the node's candidate, and why this one."""

    kind: Literal["promoted"] = "promoted"
    node: str
    draft: int
    why: str
    commit: str
    diff: str
    size: int | None = None
    size_bytes: int | None = None

    def apply(self, state: State, _: str, /) -> None:
        node, draft = state.nodes[self.node], state.draft(f"{self.node}#{self.draft}")
        made = draft or node
        state.set_node(
            self.node,
            promoted=self.draft,
            commit=self.commit,
            diff=self.diff,
            size=self.size,
            size_bytes=self.size_bytes,
            operator=made.operator,
            description=made.description,
            params=made.params,
            drawn=made.drawn,
            finding=made.finding or node.finding,
        )

    @property
    def said(self) -> str:
        return f"{self.node} draft {self.draft} promoted{because(self.why)}"


class Minimised(Event):
    """The parts that a node's parent consists of: which of them its score stands on, and which did nothing for it."""

    kind: Literal["minimised"] = "minimised"
    node: str
    minimal: Minimal

    def apply(self, state: State, _: str, /) -> None:
        state.set_node(self.node, minimal=self.minimal)

    @property
    def said(self) -> str:
        return f"{self.node}: {len(self.minimal.kept)} parts are needed, {len(self.minimal.dropped)} are not"


class PromotionAsked(Event):
    """The node is better and certified; a person is asked before it becomes the champion."""

    kind: Literal["promotion asked"] = "promotion asked"
    node: str
    over: str | None

    def apply(self, state: State, at: str, /) -> None:
        state.set_node(self.node, promotion_asked=True, promotion_since=at, promotion=None)

    @property
    def said(self) -> str:
        return f"{self.node} waits for a person's word before it becomes the best"


class PromotionAnswered(Event):
    kind: Literal["promotion answered"] = "promotion answered"
    node: str
    accepted: bool
    why: str = ""

    def apply(self, state: State, _: str, /) -> None:
        state.set_node(self.node, promotion_asked=False, promotion=self.accepted, promotion_why=self.why)

    @property
    def said(self) -> str:
        return f"{self.node} {'accepted' if self.accepted else 'declined'} by a person{because(self.why)}"
