"""The campaign's present, one record a thing. Each is a fold over events, kept as a row beside them."""

from orchestrator.domain.records.base import Doubt, FieldOf, Phase, Purpose, Role, Spent
from orchestrator.domain.records.campaign import PROFILE, Brought, Campaign, Round, Run, SiteRecord
from orchestrator.domain.records.draft import Draft, Injection, LikenessRecord
from orchestrator.domain.records.findings import Certification, Guard, HeldOut, Minimal, PartRecord
from orchestrator.domain.records.model import EVOLVING, Asked, OpenCall, PlaybookVersion
from orchestrator.domain.records.node import Node, OpenedPlace, opened_place, was_or_will_be_run
from orchestrator.domain.records.pool import POOL, Combining, MemberAtWork, MemberOutputs, PoolMember
from orchestrator.domain.records.standing import STANDING, Standing, Unsettled
from orchestrator.domain.records.trial import Calibration, Trial

__all__ = [
    "EVOLVING",
    "POOL",
    "PROFILE",
    "STANDING",
    "Asked",
    "Brought",
    "Calibration",
    "Campaign",
    "Certification",
    "Combining",
    "Doubt",
    "Draft",
    "FieldOf",
    "Guard",
    "HeldOut",
    "Injection",
    "LikenessRecord",
    "MemberAtWork",
    "MemberOutputs",
    "Minimal",
    "Node",
    "OpenCall",
    "OpenedPlace",
    "PartRecord",
    "Phase",
    "PlaybookVersion",
    "PoolMember",
    "Purpose",
    "Role",
    "Round",
    "Run",
    "SiteRecord",
    "Spent",
    "Standing",
    "Trial",
    "Unsettled",
    "opened_place",
    "was_or_will_be_run",
]
