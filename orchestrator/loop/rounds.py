"""Rounds: with --review a session ends after each, for a person to look. Pure: a resume goes on with the same round."""

from enum import Enum, auto

from orchestrator.domain import events as e
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Phase, Role, Round
from orchestrator.domain.state import State

_AT_WORK = (Phase.OPEN, Phase.QUEUED)


class Stand(Enum):
    """How far a round is: there is room for another attempt, or its last ones are at work, or it is over."""

    ROOM = auto()
    WAITS = auto()
    OVER = auto()


def next_round(state: State, size: int | None) -> e.RoundStarted | None:
    """What begins one more round; None while the last one is not over. `size` is as in the event."""
    last = state.campaign.round
    if last and last.run == state.campaign.run and stand(state, last) is not Stand.OVER:
        return None
    number = last.number + 1 if last and last.run == state.campaign.run else 1
    return e.RoundStarted(run=state.campaign.run, number=number, size=size)


def stand(state: State, now: Round) -> Stand:
    """Cancelled attempts brought nothing and do not count; what waits for its back-off, or for a person, does."""
    made = state.count_paid(Role.SEARCH) - now.paid
    if made < (now.size or 1):
        return Stand.ROOM
    nodes = (state.nodes[name] for name in state.unfinished)
    busy = any(node.phase in _AT_WORK and run_of(node.id) == now.run for node in nodes)
    return Stand.WAITS if busy else Stand.OVER


def over(now: Round) -> str:
    return (
        f"round {now.number} is over, to be looked at; blastdoor resume goes on with the next one, "
        "blastdoor resume --no-review without stops"
    )
