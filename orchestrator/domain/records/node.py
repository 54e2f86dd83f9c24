"""A node of the tree: parts by what belongs together, each with what can be said of it alone.

A node's row in the ledger is flat, so its parts are classes that it is made of, and no records inside of it. The row
has their fields in the order in which the parts stand here.
"""

from typing import Protocol

from pydantic import BaseModel, Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import Tokens
from orchestrator.domain.node import order_of
from orchestrator.domain.proposal import Drawn, Value
from orchestrator.domain.records.base import Phase, Role, Spent
from orchestrator.domain.records.findings import Certification, Guard, HeldOut, Minimal
from orchestrator.domain.verdict import Stage, Verdict

OpenedPlace = tuple[int, str, tuple[int, ...]]


def opened_place(node: str, order: int, at: str) -> OpenedPlace:
    """To sort by: the order of the ledger; of an older one that of the clock, then that of the tree."""
    return order, at, order_of(node)


class _Part(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """Nobody reads a part alone, so what reads it is not made: every command would wait for that."""


class Place(_Part):
    """Where it is in the tree, and why it exists."""

    id: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0


class Turn(_Part):
    """How far the attempt is that fills it. `take` counts how often it was begun, `not_before` says when it may be."""

    phase: Phase = Phase.OPEN
    take: int = 1
    stalls: int = 0
    not_before: str = ""


class Origin(_Part):
    """What it was made of: so many drafts, or what a person brought. `island` is its population, 0 where there is one
    or where it belongs to all; `migrated` are those that it was copied to.
    """

    drafts: int = 0
    injection: int | None = None
    island: int = 0
    migrated: tuple[int, ...] = ()


class Candidate(_Part):
    """The draft that was promoted, and what it changed. `size` counts the lines by which it differs from the root of
    its run, `size_bytes` their bytes; one of an older ledger has lines only. `drawn` is what was chosen by chance to
    make it.
    """

    promoted: int | None = None
    commit: str | None = None
    diff: str | None = None
    size: int | None = None
    size_bytes: int | None = None
    operator: str = ""
    description: str = ""
    params: dict[str, Value] | None = None
    drawn: Drawn | None = None

    def is_smaller_change_than(self, other: "Candidate") -> bool:
        """By lines and by bytes: less of one, and no more of the other. Only what both were measured by is compared."""
        sides = [(self.size, other.size), (self.size_bytes, other.size_bytes)]
        known = [(mine, its) for mine, its in sides if mine is not None and its is not None]
        return all(mine <= its for mine, its in known) and any(mine < its for mine, its in known)


class Judged(_Part):
    """Its trials, the one that was handed in, and the first verdict of each cohort."""

    trials: int = 0
    submitted: str | None = None
    verdict: Verdict | None = None
    verdicts: dict[str, Verdict] = Field(default_factory=dict)


class Guarded(_Part):
    """`guards` are its own, which its descendants inherit; `guarding` is the one at work, `guarded` what they said."""

    guards: tuple[Guard, ...] = ()
    guarding: str | None = None
    guarding_since: str = ""
    guarded: dict[str, bool] = Field(default_factory=dict)


class Certified(_Part):
    """`references` says for each cohort in which it was champion the so-manieth of the campaign it was, `challenged`
    how many tests were opened against it there; `measured` names the trials of other nodes in which it was run as their
    reference.
    """

    certification: Certification | None = None
    references: dict[str, int] = Field(default_factory=dict)
    challenged: dict[str, int] = Field(default_factory=dict)
    measured: tuple[str, ...] = ()


class AskedHeldOut(_Part):
    """What the held-out split answered; `asking` is the query that is under way."""

    asking: int | None = None
    asking_since: str = ""
    heldout: dict[str, HeldOut] = Field(default_factory=dict)


class Helped(_Part):
    """What models and agents had to do with it. `agent` is the one at work in a chamber right now; `paid` the
    micro-dollars of its calls to models, by role; `finding` is the verifier's, of the promoted draft or the worst;
    `playbook` is the version that it was made with, or is being made with.
    """

    agent: str | None = None
    agent_since: str = ""
    agent_log: str | None = None
    tokens: Tokens = Tokens()
    paid: dict[str, int] = Field(default_factory=dict)
    finding: str | None = None
    playbook: int | None = None


class Promotion(_Part):
    """`promotion` is a person's answer, to what was asked at `promotion_since`."""

    promotion: bool | None = None
    promotion_asked: bool = False
    promotion_since: str = ""
    promotion_why: str = ""


class Outcome(_Part):
    """How it ended. `stage` had the last word; `minimal` is what a minimised one found out about its parent."""

    minimal: Minimal | None = None
    ending: Ending | None = None
    kept: bool = False
    why: str = ""
    stage: Stage | None = None
    undecided: bool = False


class Money(_Part):
    """`booked` is the part of `spent` that the accounts have. `cost` is what it had spent when it ended: later usage
    must not change what was learnt from it.
    """

    spent: Spent = Spent()
    booked: Spent = Spent()
    cost: Spent | None = None


class Times(_Part):
    """`ended_trials` is how many trials it had when it ended; older ledgers do not say."""

    opened_at: str = ""
    opened_order: int = 0
    ended_at: str = ""
    ended_order: int = 0
    ended_trials: int = 0

    @property
    def ended_place(self) -> tuple[int, str]:
        """To sort by: the order of the ledger; of an older one that of the clock, which may have gone back."""
        return self.ended_order, self.ended_at


class Node(
    Times,
    Money,
    Outcome,
    Promotion,
    Helped,
    AskedHeldOut,
    Certified,
    Guarded,
    Judged,
    Candidate,
    Origin,
    Turn,
    Place,
    defer_build=False,
):
    """A place in the tree and the attempt that fills it. Its bases stand from the last to the first: that is how
    pydantic takes their fields.
    """

    @property
    def opened_place(self) -> OpenedPlace:
        return opened_place(self.id, self.opened_order, self.opened_at)

    @property
    def waits_for_person(self) -> bool:
        """Whether somebody is asked about it and has not answered. One that was interrupted meanwhile still waits."""
        return self.promotion_asked and self.phase in (Phase.OPEN, Phase.QUEUED)


class _Ended(Protocol):
    @property
    def phase(self) -> Phase: ...
    @property
    def ending(self) -> Ending | None: ...


def was_or_will_be_run(node: _Ended) -> bool:
    """What a verifier holds waits for a person; proposed once more, it would only be held once more."""
    if node.phase is Phase.QUARANTINED and node.ending is Ending.HELD:
        return True
    ended_free = node.phase is Phase.ENDED and node.ending is not None and not node.ending.charged
    return not ended_free and node.phase is not Phase.QUARANTINED
