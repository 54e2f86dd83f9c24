"""The fold: events in, records out. It costs the same for the first event as for the last."""

from datetime import datetime

from orchestrator.domain import events as e
from orchestrator.domain.state import State


def fold(state: State, event: e.Event, at: str) -> None:
    """An error here means that the event speaks of something unknown: then the ledger is broken."""
    if state.opened and state.campaign.last_at != at:
        _keep_time(state, event, at)
    event.apply(state, at)


def _keep_time(state: State, event: e.Event, at: str) -> None:
    now = state.campaign
    idle = isinstance(event, e.SessionStarted) or not now.session_open or not now.last_at
    passed = 0.0 if idle else (datetime.fromisoformat(at) - datetime.fromisoformat(now.last_at)).total_seconds()
    state.set_campaign(elapsed_s=now.elapsed_s + max(0.0, passed), last_at=at)
