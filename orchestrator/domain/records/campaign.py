"""The campaign as a whole, and its runs."""

from pydantic import BaseModel, Field

from orchestrator.domain.records.base import Spent
from orchestrator.domain.records.model import Asked
from orchestrator.domain.records.pool import Combining, MemberAtWork, MemberOutputs, PoolMember

# What money is set aside under while the root of a run is profiled.
PROFILE = "profile"


class Round(BaseModel, extra="forbid", frozen=True):
    """What is done between two looks of a person. `opened` and `paid` are how many attempts of the search the run had
    when it began, all of them and those that were not cancelled; `ended` how many attempts of the campaign had ended.
    """

    run: int
    number: int
    size: int | None
    opened: int
    paid: int
    ended: int = 0
    at: str


class SiteRecord(BaseModel, extra="forbid", frozen=True):
    """Where candidates run and what holds them there, where the judge stays, and what people must be told of it."""

    backend: str
    boundary: str
    judge: str
    caveats: tuple[str, ...] = ()

    @property
    def is_rented(self) -> bool:
        """The judge stays at home; candidates are elsewhere only where that is rented."""
        return self.backend != self.judge


class Brought(BaseModel, extra="forbid", frozen=True):
    """What a run works with and is not built in: a package brought it, or, where that is empty, a caller in Python."""

    kind: str
    name: str
    package: str = ""
    version: str = ""


class Run(BaseModel, extra="forbid", frozen=True):
    """One set of criteria. `task` is the artifact with the canonical task, `digests` what it was bound to.

    `before` has the slots that earlier runs used: a cap on attempts is one run's, a cap on money the campaign's.
    `usd_before` and `began_s` are the campaign's micro-dollars and seconds of work when it began.
    `islands` is the number of its populations; they migrate after each `migrate` attempts, and `migrated` is after how
    many they did last.
    `sites` has every place that it ran at, the present one last; `brought` what it works with that is not built in.
    `combine` is there for a combination stage, `pool` once that is frozen; `member_outputs` has what members left when
    they were run for it, by node and split, `member` the one at work.
    `profile` is the artifact with what a run of its root told of its own code; `profiled`: it was asked for. While that
    runs, `profiling` is since when.
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
    noisy: bool = False
    before: dict[str, int] = Field(default_factory=dict)
    usd_before: int = 0
    began_s: float = 0.0
    start: str | None = None
    brought: tuple[Brought, ...] = ()
    islands: int = 1
    migrate: int = 0
    migrated: int = 0
    champions: dict[str, str] = Field(default_factory=dict)
    cohort: str | None = None
    ladders: dict[str, float] = Field(default_factory=dict)
    sites: tuple[SiteRecord, ...] = ()
    combine: Combining | None = None
    pool: tuple[PoolMember, ...] = ()
    member_outputs: dict[str, MemberOutputs] = Field(default_factory=dict)
    member: MemberAtWork | None = None
    profile: str | None = None
    profiled: bool = False
    profiling: str = ""

    @property
    def site(self) -> SiteRecord | None:
        """Where it runs now; those before it were others."""
        return self.sites[-1] if self.sites else None


class Campaign(BaseModel, extra="forbid", frozen=True):
    """What belongs to no single node. `unbooked` is what was used for no attempt and is not yet in the accounts.

    `holder` is who worked on it last, `place` from where what they rented can be ended. `stood` counts what stood ready
    at a provider for no single trial, `standing` is what all of that cost.

    `challenger` is the version of the playbook that is tried beside the present one, `challengers` how many there
    were. `evolutions` is how often a challenger was asked for, `evolved_after` how many attempts the search had then.
    `asked_models` has a key of role and model, like "user claude-sonnet-5-5". `let_go` counts the trials whose outputs
    are no longer stored, `alike` the changes that were too much like others to be run; `over_budget` is what is kept
    beyond the budget and may not be let go.

    `away` says why nothing is started since `away_since`: the providers of `away_from` do not answer. `trying`: they
    do again, and one attempt is let through. `silent` gave no answer when they were last asked, since `silent_since`.
    `free` counts the free endings since an attempt was last used up, and `free_usd` the micro-dollars that they cost;
    `slept_s` tells the last standstill that was counted.
    """

    id: str
    name: str
    version: str
    run: int = 0
    epoch: int = 0
    elapsed_s: float = 0.0
    last_at: str = ""
    session_open: bool = False
    holder: str = ""
    place: str = ""
    paused: bool = False
    stopped: str = ""
    gave_up: bool = False
    request: int = 0
    counts: dict[str, int] = Field(default_factory=dict)
    branches: int = 0
    waiting: tuple[int, ...] = ()
    since_improvement: int = 0
    openings: int = 0
    endings: int = 0
    refunds: dict[str, int] = Field(default_factory=dict)
    references: int = 0
    tests: int = 0
    asked: int = 0
    askable: int = 0
    pause_why: str = ""
    away: str = ""
    away_from: tuple[str, ...] = ()
    away_since: str = ""
    trying: bool = False
    silent: tuple[str, ...] = ()
    silent_since: str = ""
    free: int = 0
    free_usd: int = 0
    slept_s: float = 0.0
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
    stood: int = 0
    standing: Spent = Spent()
    offered: int = 0
    distinct: int = 0
    alike: int = 0
    let_go: int = 0
    let_go_bytes: int = 0
    over_budget: int = 0
    unfit: int = 0
