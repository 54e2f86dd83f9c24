"""The fold: events in, records out. It costs the same for the first event as for the last."""

from datetime import datetime

from orchestrator.domain import events as e
from orchestrator.domain.state import State


def fold(state: State, event: e.Event, at: str) -> None:
    """Raises KeyError for an event that speaks of something unknown: then the ledger is broken."""
    _keep_time(state, event, at)
    event.apply(state, at)


def _keep_time(state: State, event: e.Event, at: str) -> None:
    if not state.opened:
        return
    now = state.campaign
    if now.last_at == at:
        return
    idle = isinstance(event, e.SessionStarted) or not now.session_open or not now.last_at
    passed = 0.0 if idle else _seconds(now.last_at, at)
    state.set_campaign(elapsed_s=now.elapsed_s + max(0.0, passed), last_at=at)


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
