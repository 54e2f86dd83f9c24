"""What events of rented things that stand change."""

from orchestrator.domain import events as e
from orchestrator.domain.folding.base import Handlers, fields_of
from orchestrator.domain.records import Standing
from orchestrator.domain.state import State


def _standing_intended(state: State, event: e.StandingIntended, at: str) -> None:
    state.new("standing", event.name, Standing(since=at, **fields_of(event, "kind")))
    state.set_campaign(stood=state.campaign.stood + 1)


def _standing_ended(state: State, event: e.StandingEnded, _: str) -> None:
    """It is booked by the settling of its hold, in the same transaction."""
    state.drop("standing", event.name)
    now = state.campaign
    state.set_campaign(standing=now.standing + event.spent, unbooked=now.unbooked + event.spent)


HANDLERS: Handlers = {e.StandingIntended: _standing_intended, e.StandingEnded: _standing_ended}
