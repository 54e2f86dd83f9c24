"""What each kind of event changes. Nothing here looks at anything but the event and the records that it names."""

from orchestrator.domain.folding import attempt, campaign, model, pool, standing, trial
from orchestrator.domain.folding.base import Handlers

HANDLERS: Handlers = (
    campaign.HANDLERS | attempt.HANDLERS | trial.HANDLERS | model.HANDLERS | standing.HANDLERS | pool.HANDLERS
)
