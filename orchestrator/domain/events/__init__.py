"""Everything that can happen, as a closed union. A ledger holds nothing else, in the order in which it happened."""

from typing import Annotated

from pydantic import Field, TypeAdapter

from orchestrator.domain.events.attempt import (
    AttemptEnded,
    AttemptOpened,
    AttemptQuarantined,
    AttemptReleased,
    AttemptRequeued,
    AttemptResumed,
    KillConfirmed,
    KillIntended,
    Minimised,
    OffersCounted,
    Promoted,
    PromotionAnswered,
    PromotionAsked,
    Proposed,
)
from orchestrator.domain.events.campaign import (
    BreakerClosed,
    BreakerOpened,
    BreakerTried,
    CampaignOpened,
    CampaignStopped,
    ChampionChanged,
    CohortOpened,
    InjectionQueued,
    LimitsSet,
    Migrated,
    PauseSet,
    RequestTaken,
    RoundStarted,
    RunStarted,
    SessionEnded,
    SessionStarted,
    SiteOpened,
    Steered,
    StoodStill,
)
from orchestrator.domain.events.model import (
    AgentEnded,
    AgentIntended,
    ModelCallEnded,
    ModelCallIntended,
    PlaybookChanged,
    PlaybookDiscarded,
    PlaybookGiven,
    PlaybookUsed,
    Reviewed,
    StallFound,
)
from orchestrator.domain.events.money import (
    Charged,
    Refunded,
    Reserved,
    Settled,
    StandingEnded,
    StandingIntended,
)
from orchestrator.domain.events.pool import MemberEnded, MemberIntended, PoolFrozen
from orchestrator.domain.events.trial import (
    ArtifactsOverBudget,
    CertificationOpened,
    GuardAdded,
    GuardEnded,
    GuardIntended,
    HeldOutAsked,
    HeldOutIntended,
    JudgingEnded,
    JudgingIntended,
    OutputsLetGo,
    TrialEnded,
    TrialIntended,
)

Event = Annotated[
    CampaignOpened
    | RunStarted
    | LimitsSet
    | MemberIntended
    | MemberEnded
    | PoolFrozen
    | SiteOpened
    | SessionStarted
    | SessionEnded
    | Migrated
    | AttemptOpened
    | InjectionQueued
    | Reserved
    | Settled
    | Refunded
    | Charged
    | StandingIntended
    | StandingEnded
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
    | Minimised
    | Promoted
    | TrialIntended
    | TrialEnded
    | JudgingIntended
    | JudgingEnded
    | OutputsLetGo
    | ArtifactsOverBudget
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
    | BreakerOpened
    | BreakerTried
    | BreakerClosed
    | StoodStill
    | CampaignStopped,
    Field(discriminator="kind"),
]

_UNION: TypeAdapter[Event] = TypeAdapter(Event)


def read_event(body: str) -> Event:
    """An event from the ledger. Raises pydantic's ValidationError for a kind or a field that this version lacks."""
    return _UNION.validate_json(body)


__all__ = [
    "AgentEnded",
    "AgentIntended",
    "ArtifactsOverBudget",
    "AttemptEnded",
    "AttemptOpened",
    "AttemptQuarantined",
    "AttemptReleased",
    "AttemptRequeued",
    "AttemptResumed",
    "BreakerClosed",
    "BreakerOpened",
    "BreakerTried",
    "CampaignOpened",
    "CampaignStopped",
    "CertificationOpened",
    "ChampionChanged",
    "Charged",
    "CohortOpened",
    "Event",
    "GuardAdded",
    "GuardEnded",
    "GuardIntended",
    "HeldOutAsked",
    "HeldOutIntended",
    "InjectionQueued",
    "JudgingEnded",
    "JudgingIntended",
    "KillConfirmed",
    "KillIntended",
    "LimitsSet",
    "MemberEnded",
    "MemberIntended",
    "Migrated",
    "Minimised",
    "ModelCallEnded",
    "ModelCallIntended",
    "OffersCounted",
    "OutputsLetGo",
    "PauseSet",
    "PlaybookChanged",
    "PlaybookDiscarded",
    "PlaybookGiven",
    "PlaybookUsed",
    "PoolFrozen",
    "Promoted",
    "PromotionAnswered",
    "PromotionAsked",
    "Proposed",
    "Refunded",
    "RequestTaken",
    "Reserved",
    "Reviewed",
    "RoundStarted",
    "RunStarted",
    "SessionEnded",
    "SessionStarted",
    "Settled",
    "SiteOpened",
    "StallFound",
    "StandingEnded",
    "StandingIntended",
    "Steered",
    "StoodStill",
    "TrialEnded",
    "TrialIntended",
    "read_event",
]
