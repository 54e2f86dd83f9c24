"""Blastdoor from Python: the names that stay.

    import asyncio
    import blastdoor

    finished = asyncio.run(blastdoor.search("my-task", attempts=20, seed=7))
    print(finished.reason, finished.champion.id, finished.best.metrics)

What is listed here keeps its name and its meaning from one minor version to the next; what goes is announced in the
changelog one minor version before. The code lives in `orchestrator` and `sandbox`, where everything else may change.

To search:        search, read_campaign, Campaign, How, Flags, Settings, Finished, Reading, Task, load_task
To propose:       Proposer, ProposerContext, Brief, Past, Tried, Proposal, Exhausted, Stalled
To prune:         Rule, RuleContext, Decision, Peers
To bring agents:  Preset, Start
To tell others:   News, Notifier, NotifierContext
To lend chambers: Provider, BackendContext, Site
One hostile job:  Backend, DockerConfig, ModalConfig, SkyPilotConfig, Job, Limits, Bundle, Outcome, Ending
What is raised:   TaskError, LedgerError, CannotOpen, PluginFailed, SandboxError, Refused, Unavailable, Lost
"""

from blastdoor.campaign import Campaign
from orchestrator.agents.presets import Preset, Start
from orchestrator.api import Finished, Flags, How, Reading, Settings, read_campaign, search
from orchestrator.domain.proposal import Proposal
from orchestrator.ledger import LedgerError
from orchestrator.notify import News, Notifier, NotifierContext
from orchestrator.proposers import Brief, Exhausted, Proposer, ProposerContext
from orchestrator.proposers.base import Past, PluginFailed, Stalled, Tried
from orchestrator.pruning import Decision, Peers, Rule, RuleContext
from orchestrator.task import Task, TaskError, load_task
from orchestrator.wiring.resuming import CannotOpen
from orchestrator.wiring.site import BackendContext, Provider, Site
from sandbox import (
    Backend,
    Bundle,
    DockerConfig,
    Ending,
    Job,
    Limits,
    Lost,
    ModalConfig,
    Outcome,
    Refused,
    SandboxError,
    SkyPilotConfig,
    Unavailable,
)

__all__ = [
    "Backend",
    "BackendContext",
    "Brief",
    "Bundle",
    "Campaign",
    "CannotOpen",
    "Decision",
    "DockerConfig",
    "Ending",
    "Exhausted",
    "Finished",
    "Flags",
    "How",
    "Job",
    "LedgerError",
    "Limits",
    "Lost",
    "ModalConfig",
    "News",
    "Notifier",
    "NotifierContext",
    "Outcome",
    "Past",
    "Peers",
    "PluginFailed",
    "Preset",
    "Proposal",
    "Proposer",
    "ProposerContext",
    "Provider",
    "Reading",
    "Refused",
    "Rule",
    "RuleContext",
    "SandboxError",
    "Settings",
    "Site",
    "SkyPilotConfig",
    "Stalled",
    "Start",
    "Task",
    "TaskError",
    "Tried",
    "Unavailable",
    "load_task",
    "read_campaign",
    "search",
]
