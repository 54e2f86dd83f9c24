"""Everything that can happen, as a closed union. A ledger holds nothing else, in the order in which it happened."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.proposal import Value
from orchestrator.domain.records import Calibration, Guard, Purpose, Role, Spent
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.verdict import Verdict

Amounts = dict[str, int]


class _Event(BaseModel, extra="forbid", frozen=True):
    pass


class CampaignOpened(_Event):
    kind: Literal["campaign opened"] = "campaign opened"
    campaign: str
    name: str
    version: str


class RunStarted(_Event):
    kind: Literal["run started"] = "run started"
    run: int
    task: str
    digests: dict[str, str]
    seed: int
    proposer: str
    control: str | None
    width: int
    depth: int
    why: str
    options: str
    lower_tier: bool
    before: Amounts
    start: str | None = None


class LimitsSet(_Event):
    """The caps of the accounts; absent means without one. `options` is what flags said, for the next resume."""

    kind: Literal["limits set"] = "limits set"
    limits: Amounts
    options: str = "{}"


class SessionStarted(_Event):
    """An orchestrator took the campaign over; all that older ones still say is refused."""

    kind: Literal["session started"] = "session started"
    epoch: int
    holder: str


class SessionEnded(_Event):
    kind: Literal["session ended"] = "session ended"
    why: str


class AttemptOpened(_Event):
    kind: Literal["attempt opened"] = "attempt opened"
    node: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0
    injection: int | None = None


class InjectionQueued(_Event):
    """A person's change waits for a node; `injection` is the number of the request that brought it."""

    kind: Literal["injection queued"] = "injection queued"
    injection: int
    change: str
    description: str
    on: str | None


class Reserved(_Event):
    """The worst case, set aside before anything that costs exists."""

    kind: Literal["reserved"] = "reserved"
    hold: str
    amounts: Amounts


class Settled(_Event):
    """`node` is empty for work that belongs to no attempt, like evolving the playbook."""

    kind: Literal["settled"] = "settled"
    hold: str
    node: str
    spent: Amounts


class Refunded(_Event):
    """The slot goes back; what was spent stays spent and is booked as a loss."""

    kind: Literal["refunded"] = "refunded"
    hold: str
    node: str
    spent: Amounts


class Charged(_Event):
    """Usage that arrived late, or without a reservation of its own."""

    kind: Literal["charged"] = "charged"
    what: str
    spent: Amounts
    lost: bool = False


class Proposed(_Event):
    """`tried` marks what an agent only tuned and did not hand in; `origin` is the spare draft of an earlier node that
    this one was asked for together with, like "1.3#2"; `playbook` is the version that it was made with, `steered` how
    many of a person's instructions were known by then.
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


class OffersCounted(_Event):
    """Of what one asking brought: how many changes, how many different new trees, how many that did not apply."""

    kind: Literal["offers counted"] = "offers counted"
    node: str
    offered: int
    distinct: int
    refused: int


class ModelCallIntended(_Event):
    """A call to a model is about to be made; `worst` is what it can cost. `node` is empty for work of no attempt."""

    kind: Literal["model call intended"] = "model call intended"
    node: str
    call: str
    role: ModelRole
    model: str
    worst: Spent


class ModelCallEnded(_Event):
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


class AgentIntended(_Event):
    """A chamber for a coding agent is about to be opened. `configuration` is a short name of all that shapes it."""

    kind: Literal["agent intended"] = "agent intended"
    node: str
    agent: str
    configuration: str


class AgentEnded(_Event):
    """`ending` is how its chamber ended, `why` one line; `left_out` counts files that it may not change."""

    kind: Literal["agent ended"] = "agent ended"
    node: str
    ending: str
    why: str = ""
    log: str | None = None
    left_out: int = 0
    spent: Spent = Spent()
    interrupted: bool = False


class StallFound(_Event):
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


class Reviewed(_Event):
    """What a verifier made of a change before a trial was paid for. It can hold or flag, and never scores.

    `unreviewed`: nobody could be asked, or nothing was left to ask with; the attempt goes on.
    """

    kind: Literal["reviewed"] = "reviewed"
    node: str
    draft: int
    finding: Literal["pass", "flag", "hold", "unreviewed"]
    reasons: str


class Steered(_Event):
    """A person's instruction to all who propose, from now on."""

    kind: Literal["steered"] = "steered"
    text: str


class RoundStarted(_Event):
    """With --review: the session ends once this round is over. `size` is how many attempts of the search make it up,
    None for one asking with every change that it brings.
    """

    kind: Literal["round started"] = "round started"
    run: int
    number: int
    size: int | None


class PlaybookChanged(_Event):
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


class PlaybookGiven(_Event):
    """Which version an attempt works with, said before it asks a model. `challenger` is the one whose test it is
    part of, None for an attempt that is in none.
    """

    kind: Literal["playbook given"] = "playbook given"
    node: str
    version: int
    challenger: int | None = None


class PlaybookUsed(_Event):
    """A version that was there becomes the present one."""

    kind: Literal["playbook used"] = "playbook used"
    version: int
    by: Literal["person", "evolver"]
    why: str


class PlaybookDiscarded(_Event):
    """A challenger that was not shown to be better; it stays in the log."""

    kind: Literal["playbook discarded"] = "playbook discarded"
    version: int
    why: str


class PromotionAsked(_Event):
    """The node is better and certified; a person is asked before it becomes the champion."""

    kind: Literal["promotion asked"] = "promotion asked"
    node: str
    over: str | None


class PromotionAnswered(_Event):
    kind: Literal["promotion answered"] = "promotion answered"
    node: str
    accepted: bool
    why: str = ""


class Promoted(_Event):
    """The draft that becomes the node's candidate, and why this one."""

    kind: Literal["promoted"] = "promoted"
    node: str
    draft: int
    why: str
    commit: str
    diff: str
    size: int | None = None


class TrialIntended(_Event):
    kind: Literal["trial intended"] = "trial intended"
    trial: str
    node: str
    purpose: Purpose
    draft: int


class TrialEnded(_Event):
    """`ending` is None for a trial whose outputs go to the judge. `pruning` is None for one that no rule watched."""

    kind: Literal["trial ended"] = "trial ended"
    trial: str
    ending: Ending | None
    reason: str = ""
    exit_code: int | None = None
    outputs: str | None = None
    log: str | None = None
    fingerprint: dict[str, str] = Field(default_factory=dict)
    spent: Spent = Spent()
    reports: Reports | None = None
    pruning: Look | None = None


class JudgingIntended(_Event):
    kind: Literal["judging intended"] = "judging intended"
    trial: str
    judging: str
    on_baseline: bool = False


class JudgingEnded(_Event):
    """A verdict, or the fixed code of what was wrong; the judge's own text is never recorded with a fault.

    `interrupted`: nothing was learnt, only spent.
    """

    kind: Literal["judging ended"] = "judging ended"
    trial: str
    judging: str
    on_baseline: bool = False
    verdict: Verdict | None = None
    fault: str | None = None
    traces: str | None = None
    spent: Spent = Spent()
    interrupted: bool = False
    calibration: Calibration | None = None


class CertificationOpened(_Event):
    """A test whether the node is better than the champion. Its level is fixed before the first repeat is run."""

    kind: Literal["certification opened"] = "certification opened"
    node: str
    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float


class GuardIntended(_Event):
    kind: Literal["guard intended"] = "guard intended"
    node: str
    guard: str


class GuardEnded(_Event):
    kind: Literal["guard ended"] = "guard ended"
    node: str
    guard: str
    passed: bool
    reason: str = ""
    spent: Spent = Spent()
    interrupted: bool = False


class GuardAdded(_Event):
    kind: Literal["guard added"] = "guard added"
    node: str
    guard: Guard


class HeldOutIntended(_Event):
    """The held-out split is asked about a node. It counts from here on, whatever becomes of it."""

    kind: Literal["held-out intended"] = "held-out intended"
    node: str
    query: int
    queries: int


class HeldOutAsked(_Event):
    """What the ladder says, never the score itself: whether it is better, and the rounded value that it releases.

    `cohort` is what the trial was measured on; `interrupted`: nothing was learnt, only asked and spent.
    """

    kind: Literal["held-out asked"] = "held-out asked"
    node: str
    query: int
    cohort: str = ""
    better: bool = False
    released: float | None = None
    step: float = 0.0
    fault: str = ""
    spent: Spent = Spent()
    interrupted: bool = False


class KillIntended(_Event):
    kind: Literal["kill intended"] = "kill intended"
    node: str
    why: str


class KillConfirmed(_Event):
    kind: Literal["kill confirmed"] = "kill confirmed"
    node: str


class AttemptEnded(_Event):
    kind: Literal["attempt ended"] = "attempt ended"
    node: str
    ending: Ending
    kept: bool = False
    why: str = ""


class AttemptRequeued(_Event):
    """A free ending; `not_before` is when it may be tried again."""

    kind: Literal["attempt requeued"] = "attempt requeued"
    node: str
    ending: Ending
    why: str
    not_before: str


class AttemptQuarantined(_Event):
    kind: Literal["attempt quarantined"] = "attempt quarantined"
    node: str
    ending: Ending
    why: str


class AttemptReleased(_Event):
    """A person, or the scheduler when its time has come, lets a waiting attempt go on with a new reservation."""

    kind: Literal["attempt released"] = "attempt released"
    node: str
    by: str


class AttemptResumed(_Event):
    """A queued attempt goes on, with a new reservation."""

    kind: Literal["attempt resumed"] = "attempt resumed"
    node: str


class CohortOpened(_Event):
    """Something that binds has changed: new baseline, and the champion is run again."""

    kind: Literal["cohort opened"] = "cohort opened"
    run: int
    cohort: str
    why: str


class ChampionChanged(_Event):
    kind: Literal["champion changed"] = "champion changed"
    run: int
    node: str
    cohort: str
    over: str | None


class RequestTaken(_Event):
    """What another terminal asked for, and what became of it."""

    kind: Literal["request taken"] = "request taken"
    request: int
    asked: str
    answer: str


class PauseSet(_Event):
    """`why` says what made the orchestrator pause by itself; empty for a person's wish."""

    kind: Literal["pause set"] = "pause set"
    paused: bool
    why: str = ""


class CampaignStopped(_Event):
    kind: Literal["campaign stopped"] = "campaign stopped"
    reason: str


Event = Annotated[
    CampaignOpened
    | RunStarted
    | LimitsSet
    | SessionStarted
    | SessionEnded
    | AttemptOpened
    | InjectionQueued
    | Reserved
    | Settled
    | Refunded
    | Charged
    | Proposed
    | OffersCounted
    | ModelCallIntended
    | ModelCallEnded
    | AgentIntended
    | AgentEnded
    | StallFound
    | Reviewed
    | Steered
    | RoundStarted
    | PlaybookChanged
    | PlaybookGiven
    | PlaybookUsed
    | PlaybookDiscarded
    | PromotionAsked
    | PromotionAnswered
    | Promoted
    | TrialIntended
    | TrialEnded
    | JudgingIntended
    | JudgingEnded
    | CertificationOpened
    | GuardIntended
    | GuardEnded
    | GuardAdded
    | HeldOutIntended
    | HeldOutAsked
    | KillIntended
    | KillConfirmed
    | AttemptEnded
    | AttemptRequeued
    | AttemptQuarantined
    | AttemptReleased
    | AttemptResumed
    | CohortOpened
    | ChampionChanged
    | RequestTaken
    | PauseSet
    | CampaignStopped,
    Field(discriminator="kind"),
]

_UNION: TypeAdapter[Event] = TypeAdapter(Event)


def read_event(body: str) -> Event:
    """An event from the ledger. Raises pydantic's ValidationError for a kind or a field that this version lacks."""
    return _UNION.validate_json(body)
