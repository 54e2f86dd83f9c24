"""Where changes come from. A proposer sees the campaign and offers; it runs nothing and scores nothing."""

from orchestrator.proposers.base import (
    Barred,
    Brief,
    Computed,
    Exhausted,
    Past,
    Playbook,
    PluginFailed,
    Proposer,
    ProposerContext,
    Stalled,
    Tried,
    Tuned,
    Unanswered,
)
from orchestrator.proposers.grid import Grid
from orchestrator.proposers.injected import Injected
from orchestrator.proposers.random import Random

__all__ = [
    "Barred",
    "Brief",
    "Computed",
    "Exhausted",
    "Grid",
    "Injected",
    "Past",
    "Playbook",
    "PluginFailed",
    "Proposer",
    "ProposerContext",
    "Random",
    "Stalled",
    "Tried",
    "Tuned",
    "Unanswered",
]
