"""A node of the tree, its drafts, and what was found out about it."""

from typing import Any

from pydantic import BaseModel, Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import Tokens
from orchestrator.domain.node import order_of
from orchestrator.domain.proposal import Drawn, Value
from orchestrator.domain.records.base import Phase, Role, Spent
from orchestrator.domain.verdict import Stage, Verdict


class Guard(BaseModel, extra="forbid", frozen=True):
    """A command that must pass for a candidate to be kept; `place` is the candidate's chamber or the judge's."""

    name: str
    command: tuple[str, ...]
    place: str = "chamber"
    limits: dict[str, Any] = Field(default_factory=dict)


class HeldOut(BaseModel, extra="forbid", frozen=True):
    """What the ladder answered about a node on the held-out split; the exact score is nowhere.

    `released` is the ladder's value from then on, None where nothing could be compared. `worse` is None unless a gate
    asked that, and not whether it is better. `fault` is a fixed code, and
    only ever the baseline's: of a candidate, no score and a score that is no better are not told apart.
    """

    query: int
    better: bool
    worse: bool | None = None
    released: float | None
    step: float
    fault: str = ""


class LikenessRecord(BaseModel, extra="forbid", frozen=True):
    """`form` is the same for trees that differ only in writing, `sketch` tells how much two changes of one parent have
    in common. `twin` is the draft that it was most like when it was proposed, like "1.3#2", and `alike` how much.
    """

    form: str
    sketch: str = ""
    twin: str | None = None
    alike: float = 0.0


class Draft(BaseModel, extra="forbid", frozen=True):
    """A proposal inside an attempt; the one that is promoted becomes the node's candidate.

    `tried` is one that an agent tuned without handing it in: it is never promoted by itself. `finding` is the
    verifier's, "released" where a person let go what it held; `reasons` are what it said. `known_as` is the digest of
    the same tree with its parameters in our own writing, where they are written otherwise.
    """

    node: str
    number: int
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
    finding: str | None = None
    reasons: str = ""
    steered: int = 0
    known_as: str | None = None
    likeness: LikenessRecord | None = None
    drawn: Drawn | None = None
    verdict: Verdict | None = None
    guarded: dict[str, bool] = Field(default_factory=dict)


class PartRecord(BaseModel, extra="forbid", frozen=True):
    """A part of a change: where it is, and what became of what there. `worth` has the metrics without it, where that
    was measured; `fate` says in words what happened then, where there are none.
    """

    where: str
    before: str
    after: str
    worth: dict[str, float] | None = None
    fate: str = ""


class Minimal(BaseModel, extra="forbid", frozen=True):
    """What a winner was found to consist of. `complete`: no single part can go; else `why` says what came between."""

    kept: tuple[PartRecord, ...]
    dropped: tuple[PartRecord, ...]
    complete: bool
    why: str = ""


class Certification(BaseModel, extra="forbid", frozen=True):
    """A test whether a candidate is better than a champion. `since` is how many trials its node had before it: only
    later ones count. `number` is the test's in the campaign; `reference` and `against` are what its level comes from.
    `blocks` is how many of them it has at most; 0 for a test of older ledgers, whose champion was measured beforehand.
    `both`: it may also prove the candidate worse.
    """

    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float
    since: int = 0
    blocks: int = 0
    both: bool = False


OpenedPlace = tuple[int, str, tuple[int, ...]]


def opened_place(node: str, order: int, at: str) -> OpenedPlace:
    """To sort by: the order of the ledger; of an older one that of the clock, then that of the tree."""
    return order, at, order_of(node)


class Node(BaseModel, extra="forbid", frozen=True):
    """A place in the tree and the attempt that fills it. `booked` is the part of `spent` that the accounts have.

    `size` counts the lines by which it differs from the root of its run, `size_bytes` their bytes; a node of an older
    ledger has lines only. `references` says for each cohort in which it was champion the so-manieth of the campaign it
    was, `challenged` how many tests were opened against it there; `measured` names the trials of other nodes in which
    it was run as their reference.
    `agent` is the one at work in a chamber right now; `finding` is the verifier's, of the promoted draft or the worst;
    `promotion` a person's answer, to what was asked at `promotion_since`. `playbook` is the version that it was made
    with, or is being made with; `paid` the micro-dollars of its calls to models, by role. `drawn` is what was chosen by
    chance to make it, `cost` what it had spent when it ended: later usage must not change what was learnt from it.
    `island` is its population, 0 where there is one or where it belongs to all; `migrated` are those that it was copied
    to. `minimal` is what a minimised one found out about its parent.
    """

    id: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0
    phase: Phase = Phase.OPEN
    take: int = 1
    stalls: int = 0
    not_before: str = ""
    drafts: int = 0
    injection: int | None = None
    island: int = 0
    migrated: tuple[int, ...] = ()
    promoted: int | None = None
    commit: str | None = None
    diff: str | None = None
    size: int | None = None
    size_bytes: int | None = None
    operator: str = ""
    description: str = ""
    params: dict[str, Value] | None = None
    drawn: Drawn | None = None
    trials: int = 0
    submitted: str | None = None
    verdict: Verdict | None = None
    verdicts: dict[str, Verdict] = Field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    guarding: str | None = None
    guarding_since: str = ""
    guarded: dict[str, bool] = Field(default_factory=dict)
    certification: Certification | None = None
    references: dict[str, int] = Field(default_factory=dict)
    challenged: dict[str, int] = Field(default_factory=dict)
    measured: tuple[str, ...] = ()
    asking: int | None = None
    asking_since: str = ""
    heldout: dict[str, HeldOut] = Field(default_factory=dict)
    agent: str | None = None
    agent_since: str = ""
    agent_log: str | None = None
    tokens: Tokens = Tokens()
    paid: dict[str, int] = Field(default_factory=dict)
    finding: str | None = None
    playbook: int | None = None
    promotion: bool | None = None
    promotion_asked: bool = False
    promotion_since: str = ""
    promotion_why: str = ""
    minimal: Minimal | None = None
    ending: Ending | None = None
    kept: bool = False
    why: str = ""
    stage: Stage | None = None
    undecided: bool = False
    spent: Spent = Spent()
    booked: Spent = Spent()
    cost: Spent | None = None
    opened_at: str = ""
    opened_order: int = 0
    ended_at: str = ""
    ended_order: int = 0

    @property
    def opened_place(self) -> OpenedPlace:
        return opened_place(self.id, self.opened_order, self.opened_at)

    @property
    def ended_place(self) -> tuple[int, str]:
        """To sort by: the order of the ledger; of an older one that of the clock, which may have gone back."""
        return self.ended_order, self.ended_at

    def is_smaller_change_than(self, other: "Node") -> bool:
        """By lines and by bytes: less of one, and no more of the other. Only what both were measured by is compared."""
        sides = [(self.size, other.size), (self.size_bytes, other.size_bytes)]
        known = [(mine, its) for mine, its in sides if mine is not None and its is not None]
        return all(mine <= its for mine, its in known) and any(mine < its for mine, its in known)

    @property
    def waits_for_person(self) -> bool:
        """Whether somebody is asked about it and has not answered. One that was interrupted meanwhile still waits."""
        return self.promotion_asked and self.phase in (Phase.OPEN, Phase.QUEUED)


def was_or_will_be_run(node: Node) -> bool:
    """What a verifier holds waits for a person; proposed once more, it would only be held once more."""
    if node.phase is Phase.QUARANTINED and node.ending is Ending.HELD:
        return True
    ended_free = node.phase is Phase.ENDED and node.ending is not None and not node.ending.charged
    return not ended_free and node.phase is not Phase.QUARANTINED


class Injection(BaseModel, extra="forbid", frozen=True):
    """A change that a person brought, until a node takes it up. `on` is the node to build on, None for the champion."""

    id: int
    change: str
    description: str
    on: str | None = None
