"""The campaign's present, one record a thing. Each is a fold over events, kept as a row beside them."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import ModelRole, Tokens
from orchestrator.domain.proposal import Value
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.verdict import Mode, Verdict

# What the holds of evolving the playbook are called: it belongs to no node.
EVOLVING = "evolve-"


class Role(StrEnum):
    """Why a node exists. Only search and injected nodes draw from attempts; the control has a pool of its own."""

    BASELINE = "baseline"
    SEARCH = "search"
    CONTROL = "control"
    INJECTED = "injected"


class Purpose(StrEnum):
    """Why a trial runs. A re-run gives a node a verdict in a new cohort; a replay asks whether a score stands, a
    repeat measures once more what is noisy.
    """

    TUNE = "tune"
    SUBMIT = "submit"
    RERUN = "rerun"
    REPLAY = "replay"
    REPEAT = "repeat"

    @property
    def mode(self) -> Mode:
        return Mode.TUNE if self is Purpose.TUNE else Mode.SUBMIT


class Phase(StrEnum):
    QUEUED = "queued"
    OPEN = "open"
    QUARANTINED = "quarantined"
    ENDED = "ended"


class Spent(BaseModel, extra="forbid", frozen=True):
    """Measured outside the chamber; in the smallest units, so that sums are exact."""

    microdollars: int = 0
    milliseconds: int = 0
    tokens: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            microdollars=self.microdollars + other.microdollars,
            milliseconds=self.milliseconds + other.milliseconds,
            tokens=self.tokens + other.tokens,
        )

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(
            microdollars=self.microdollars - other.microdollars,
            milliseconds=self.milliseconds - other.milliseconds,
            tokens=self.tokens - other.tokens,
        )


class Calibration(BaseModel, extra="forbid", frozen=True):
    """Of a judging that called the candidate: what an empty call took and how far nine of ten differed from that.

    `seed` is what the judge was given to draw from, so that its inputs can be drawn again.
    """

    seed: str
    median_s: float
    jitter_s: float
    calls: int = 0


class Guard(BaseModel, extra="forbid", frozen=True):
    """A command that must pass for a candidate to be kept; `place` is the candidate's chamber or the judge's."""

    name: str
    command: tuple[str, ...]
    place: str = "chamber"
    limits: dict[str, Any] = Field(default_factory=dict)


class HeldOut(BaseModel, extra="forbid", frozen=True):
    """What the ladder answered about a node on the held-out split; the exact score is nowhere.

    `released` is the ladder's value from then on, None where nothing could be compared. `fault` is a fixed code, and
    only ever the baseline's: of a candidate, no score and a score that is no better are not told apart.
    """

    query: int
    better: bool
    released: float | None
    step: float
    fault: str = ""


class Run(BaseModel, extra="forbid", frozen=True):
    """One set of criteria. `task` is the artifact with the canonical task, `digests` what it was bound to.

    `before` has the slots that earlier runs used: a cap on attempts is one run's, a cap on money the campaign's.
    """

    number: int
    task: str
    digests: dict[str, str]
    seed: int
    proposer: str
    control: str | None
    width: int
    depth: int
    why: str
    root: str
    options: str = "{}"
    lower_tier: bool = False
    before: dict[str, int] = Field(default_factory=dict)
    start: str | None = None
    champions: dict[str, str] = Field(default_factory=dict)
    cohort: str | None = None
    ladders: dict[str, float] = Field(default_factory=dict)


class Round(BaseModel, extra="forbid", frozen=True):
    """What is done between two looks of a person. `opened` and `paid` are how many attempts of the search the run had
    when it began, all of them and those that were not cancelled.
    """

    run: int
    number: int
    size: int | None
    opened: int
    paid: int
    at: str


class OpenCall(BaseModel, extra="forbid", frozen=True):
    """A call to a model that has not ended; if nobody hears of it again, it is booked at its worst case."""

    node: str
    role: ModelRole
    model: str
    worst: Spent


class Asked(BaseModel, extra="forbid", frozen=True):
    """What calls of one role to one model came to."""

    calls: int = 0
    spent: Spent = Spent()
    tokens: Tokens = Tokens()


class PlaybookVersion(BaseModel, extra="forbid", frozen=True):
    """Of a challenger: `level` and `pairs` are those of its test, `given` are the attempts dealt out in it, in
    order, to itself and to the present version, and `fate` says what became of it.
    """

    number: int
    files: str
    parent: int | None
    by: str
    why: str
    at: str
    level: float | None = None
    pairs: int = 0
    given: tuple[str, ...] = ()
    fate: str = ""


class Draft(BaseModel, extra="forbid", frozen=True):
    """A proposal inside an attempt; the one that is promoted becomes the node's candidate.

    `tried` is one that an agent tuned without handing it in: it is never promoted by itself. `finding` is the
    verifier's, "released" where a person let go what it held; `reasons` are what it said.
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
    verdict: Verdict | None = None


class Certification(BaseModel, extra="forbid", frozen=True):
    """A test whether a candidate is better than a champion. `since` is how many trials its node had before it: only
    later ones count. `number` is the test's in the campaign; `reference` and `against` are what its level comes from.
    """

    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float
    since: int = 0


class Node(BaseModel, extra="forbid", frozen=True):
    """A place in the tree and the attempt that fills it. `booked` is the part of `spent` that the accounts have.

    `size` counts the lines by which it differs from the root of its run. `references` says for each cohort in which
    it was champion the so-manieth of the campaign it was, `challenged` how many tests were opened against it there.
    `agent` is the one at work in a chamber right now; `finding` is the verifier's, of the promoted draft or the worst;
    `promotion` a person's answer, to what was asked at `promotion_since`. `playbook` is the version that it was made
    with, or is being made with; `paid` the micro-dollars of its calls to models, by role.
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
    promoted: int | None = None
    commit: str | None = None
    diff: str | None = None
    size: int | None = None
    operator: str = ""
    description: str = ""
    params: dict[str, Value] | None = None
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
    ending: Ending | None = None
    kept: bool = False
    why: str = ""
    spent: Spent = Spent()
    booked: Spent = Spent()
    opened_at: str = ""
    ended_at: str = ""

    @property
    def waits_for_person(self) -> bool:
        """Whether somebody is asked about it and has not answered. One that was interrupted meanwhile still waits."""
        return self.promotion_asked and self.phase in (Phase.OPEN, Phase.QUEUED)


class Injection(BaseModel, extra="forbid", frozen=True):
    """A change that a person brought, until a node takes it up. `on` is the node to build on, None for the champion."""

    id: int
    change: str
    description: str
    on: str | None = None


class Trial(BaseModel, extra="forbid", frozen=True):
    """One chamber's life for one candidate, and what the judge made of it."""

    id: str
    node: str
    purpose: Purpose
    draft: int
    started_at: str
    ended: bool = False
    ending: Ending | None = None
    reason: str = ""
    exit_code: int | None = None
    outputs: str | None = None
    log: str | None = None
    fingerprint: dict[str, str] = Field(default_factory=dict)
    spent: Spent = Spent()
    judging: str | None = None
    judging_since: str = ""
    fault: str | None = None
    judged: bool = False
    verdict: Verdict | None = None
    traces: str | None = None
    reports: Reports | None = None
    pruning: Look | None = None
    calibration: Calibration | None = None


class Campaign(BaseModel, extra="forbid", frozen=True):
    """What belongs to no single node. `unbooked` is what models used for no attempt, not yet in the accounts.

    `challenger` is the version of the playbook that is tried beside the present one, `challengers` how many there
    were. `evolutions` is how often a challenger was asked for, `evolved_after` how many attempts the search had then.
    `asked_models` has a key of role and model, like "user claude-sonnet-5-5".
    """

    id: str
    name: str
    version: str
    run: int = 0
    epoch: int = 0
    elapsed_s: float = 0.0
    last_at: str = ""
    session_open: bool = False
    paused: bool = False
    stopped: str = ""
    request: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    branches: int = 0
    waiting: tuple[int, ...] = ()
    since_improvement: int = 0
    refunds: dict[str, int] = Field(default_factory=dict)
    references: int = 0
    tests: int = 0
    asked: int = 0
    askable: int = 0
    pause_why: str = ""
    steering: tuple[str, ...] = ()
    round: Round | None = None
    playbook: int | None = None
    challenger: int | None = None
    challengers: int = 0
    evolutions: int = 0
    evolved_after: int = 0
    calls: int = 0
    asked_models: dict[str, Asked] = Field(default_factory=dict)
    unbooked: Spent = Spent()
    offered: int = 0
    distinct: int = 0
    unfit: int = 0
