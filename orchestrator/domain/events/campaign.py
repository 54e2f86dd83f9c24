"""What belongs to a campaign as a whole: its runs, its sessions, and what a person says."""

from typing import Literal

from orchestrator.domain.events.base import Amounts, OneEvent
from orchestrator.domain.records import Brought, Combining, SiteRecord


class CampaignOpened(OneEvent):
    kind: Literal["campaign opened"] = "campaign opened"
    campaign: str
    name: str
    version: str


class RunStarted(OneEvent):
    """`before` has the slots that earlier runs used, `usd_before` the micro-dollars of the campaign until now.

    `brought` has what packages of others, or a caller in Python, put in. `islands` is the number of populations,
    `migrate` how many attempts lie between two migrations.
    """

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
    noisy: bool = False
    before: Amounts
    usd_before: int = 0
    start: str | None = None
    brought: tuple[Brought, ...] = ()
    islands: int = 1
    migrate: int = 0
    combine: Combining | None = None


class Migrated(OneEvent):
    """After so many attempts of a run, each of these nodes may be built on by one more island."""

    kind: Literal["migrated"] = "migrated"
    run: int
    after: int
    moves: tuple[tuple[str, int], ...]


class LimitsSet(OneEvent):
    """The caps of the accounts; absent means without one. `options` is what flags said, for the next resume."""

    kind: Literal["limits set"] = "limits set"
    limits: Amounts
    options: str = "{}"


class SiteOpened(OneEvent):
    """Where the run's candidates go from now on, and where its judge stays."""

    kind: Literal["site opened"] = "site opened"
    site: SiteRecord


class SessionStarted(OneEvent):
    """An orchestrator took the campaign over; all that older ones still say is refused.

    `place` is from where what it rents can be ended, empty where nothing is rented.
    """

    kind: Literal["session started"] = "session started"
    epoch: int
    holder: str
    place: str = ""


class SessionEnded(OneEvent):
    kind: Literal["session ended"] = "session ended"
    why: str


class RequestTaken(OneEvent):
    """What another terminal asked for, and what became of it."""

    kind: Literal["request taken"] = "request taken"
    request: int
    asked: str
    answer: str


class PauseSet(OneEvent):
    """`why` says what made the orchestrator pause by itself; empty for a person's wish."""

    kind: Literal["pause set"] = "pause set"
    paused: bool
    why: str = ""


class BreakerOpened(OneEvent):
    """Providers failed, `why` in the words of the last one: nothing is started before they answer a probe, the next
    one in `wait_s`. `tries` is how many probes and attempts failed since it opened.
    """

    kind: Literal["breaker opened"] = "breaker opened"
    providers: tuple[str, ...]
    why: str
    wait_s: float
    tries: int = 0


class BreakerTried(OneEvent):
    """The providers answered a probe: one attempt at a time is let through."""

    kind: Literal["breaker tried"] = "breaker tried"


class BreakerClosed(OneEvent):
    kind: Literal["breaker closed"] = "breaker closed"


class StoodStill(OneEvent):
    """The machine was suspended, or the orchestrator stopped, for so long: it counts for nobody."""

    kind: Literal["stood still"] = "stood still"
    seconds: float


class CampaignStopped(OneEvent):
    """`gave_up`: too many attempts in a row ended free."""

    kind: Literal["campaign stopped"] = "campaign stopped"
    reason: str
    gave_up: bool = False


class CohortOpened(OneEvent):
    """Something that binds has changed: new baseline, and the champion is run again."""

    kind: Literal["cohort opened"] = "cohort opened"
    run: int
    cohort: str
    why: str


class ChampionChanged(OneEvent):
    kind: Literal["champion changed"] = "champion changed"
    run: int
    node: str
    cohort: str
    over: str | None


class Steered(OneEvent):
    """A person's instruction to all who propose, from now on."""

    kind: Literal["steered"] = "steered"
    text: str


class RoundStarted(OneEvent):
    """With --review: the session ends once this round is over. `size` is how many attempts of the search make it up,
    None for one asking with every change that it brings.
    """

    kind: Literal["round started"] = "round started"
    run: int
    number: int
    size: int | None


class InjectionQueued(OneEvent):
    """A person's change waits for a node; `injection` is the number of the request that brought it."""

    kind: Literal["injection queued"] = "injection queued"
    injection: int
    change: str
    description: str
    on: str | None
