"""What events of pools change."""

from orchestrator.domain import events as e
from orchestrator.domain.folding.base import Handlers
from orchestrator.domain.records import MemberAtWork, MemberOutputs
from orchestrator.domain.state import State


def _member_intended(state: State, event: e.MemberIntended, at: str) -> None:
    state.put("run", str(event.run), member=MemberAtWork(node=event.node, split=event.split, since=at))


def _member_ended(state: State, event: e.MemberEnded, _: str) -> None:
    """It is booked by the settling of its hold, in the same transaction."""
    state.put("run", str(event.run), member=None)
    state.set_campaign(unbooked=state.campaign.unbooked + event.spent)
    if not event.interrupted:
        left = MemberOutputs(outputs=event.outputs, bytes=event.bytes, fault=event.fault)
        known = state.runs[str(event.run)].member_outputs
        state.put("run", str(event.run), member_outputs={**known, f"{event.node}/{event.split}": left})


def _pool_frozen(state: State, event: e.PoolFrozen, _: str) -> None:
    state.put("run", str(event.run), pool=event.members)


HANDLERS: Handlers = {
    e.MemberIntended: _member_intended,
    e.MemberEnded: _member_ended,
    e.PoolFrozen: _pool_frozen,
}
