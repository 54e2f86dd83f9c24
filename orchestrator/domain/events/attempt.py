"""An attempt from its opening to its ending."""

from typing import Literal

from orchestrator.domain.ending import Ending
from orchestrator.domain.events.base import OneEvent
from orchestrator.domain.proposal import Drawn, Value
from orchestrator.domain.records import LikenessRecord, Minimal, Role, Spent
from orchestrator.domain.verdict import Stage


class AttemptOpened(OneEvent):
    """`island` is the population that it belongs to, 0 where there is one, or where it belongs to all."""

    kind: Literal["attempt opened"] = "attempt opened"
    node: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0
    injection: int | None = None
    island: int = 0


class Proposed(OneEvent):
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


class OffersCounted(OneEvent):
    """Of what one asking brought: how many changes, how many different new trees, how many that did not apply, and how
    many that are too much alike to be run.
    """

    kind: Literal["offers counted"] = "offers counted"
    node: str
    offered: int
    distinct: int
    refused: int
    alike: int = 0


class Promoted(OneEvent):
    """The draft that becomes the node's candidate, and why this one."""

    kind: Literal["promoted"] = "promoted"
    node: str
    draft: int
    why: str
    commit: str
    diff: str
    size: int | None = None
    size_bytes: int | None = None


class Minimised(OneEvent):
    """The parts that a node's parent consists of: which of them its score stands on, and which did nothing for it."""

    kind: Literal["minimised"] = "minimised"
    node: str
    minimal: Minimal


class PromotionAsked(OneEvent):
    """The node is better and certified; a person is asked before it becomes the champion."""

    kind: Literal["promotion asked"] = "promotion asked"
    node: str
    over: str | None


class PromotionAnswered(OneEvent):
    kind: Literal["promotion answered"] = "promotion answered"
    node: str
    accepted: bool
    why: str = ""


class KillIntended(OneEvent):
    kind: Literal["kill intended"] = "kill intended"
    node: str
    why: str


class KillConfirmed(OneEvent):
    kind: Literal["kill confirmed"] = "kill confirmed"
    node: str


class AttemptEnded(OneEvent):
    """`stage` had the last word on a candidate with a score; older ledgers do not say. `undecided`: it is not kept
    since it could not be compared, which says nothing about the candidate. `cost` is what was spent on it by then; what
    arrives later does not change what a search learnt from it. `drawn` is what was chosen where no proposal came of it.
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


class AttemptRequeued(OneEvent):
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


class AttemptQuarantined(OneEvent):
    kind: Literal["attempt quarantined"] = "attempt quarantined"
    node: str
    ending: Ending
    why: str
    lost: int = 0


class AttemptReleased(OneEvent):
    """A person, or the scheduler when its time has come, lets a waiting attempt go on with a new reservation."""

    kind: Literal["attempt released"] = "attempt released"
    node: str
    by: str


class AttemptResumed(OneEvent):
    """A queued attempt goes on, with a new reservation."""

    kind: Literal["attempt resumed"] = "attempt resumed"
    node: str
