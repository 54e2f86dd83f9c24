"""Rounds: with --review a session ends after each, for a person to look. Pure: a resume goes on with the same round."""

from collections.abc import Callable
from enum import Enum, auto

from orchestrator.domain import events as e
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Phase, Role, Round
from orchestrator.domain.state import State
from orchestrator.loop.openings import Opening
from orchestrator.loop.spares import is_one_left
from orchestrator.loop.workbench import Workbench

_AT_WORK = (Phase.OPEN, Phase.QUEUED)


class Stand(Enum):
    """How far a round is: there is room for another attempt, or its last ones are at work, or it is over."""

    ROOM = auto()
    WAITS = auto()
    OVER = auto()


def next_round(state: State, size: int | None, *, spare: bool) -> e.RoundStarted | None:
    """What begins one more round; None while the last one is not over. `size` is as in the event."""
    last = state.campaign.round if state.campaign.round and state.campaign.round.run == state.campaign.run else None
    if last and stand(state, last, spare=spare) is not Stand.OVER:
        return None
    number = last.number + 1 if last else 1
    return e.RoundStarted(run=state.campaign.run, number=number, size=size)


def stand(state: State, now: Round, *, spare: bool) -> Stand:
    """Cancelled attempts brought nothing and do not count; what waits for its back-off, or for a person, does.

    `spare` says whether the next attempt would need no asking: its change was offered together with an earlier one.
    """
    made = state.count_paid(Role.SEARCH) - now.paid
    if made < (now.size or 1) or (now.size is None and spare):
        return Stand.ROOM
    nodes = (state.nodes[name] for name in state.unfinished)
    busy = any(node.phase in _AT_WORK and run_of(node.id) == now.run for node in nodes)
    return Stand.WAITS if busy else Stand.OVER


class Rounds:
    """Of a session that ends with its round. `opening` says where the next attempt would be made.

    A round of points is as many attempts as run at a time, one of code is one asking with all that it brings.
    """

    def __init__(self, bench: Workbench, width: int, opening: Callable[[], Opening | None]) -> None:
        self._bench = bench
        self._width = width
        self._opening = opening

    def begin(self) -> None:
        """One more, unless the last one is not over."""
        size = None if self._bench.proposers[Role.SEARCH].serial else self._width
        if started := next_round(self._bench.state, size, spare=self._has_spare()):
            self._bench.book.record(started)

    def stand(self) -> Stand:
        return stand(self._bench.state, self._present, spare=self._has_spare())

    @property
    def over(self) -> str:
        return over(self._present)

    @property
    def _present(self) -> Round:
        now = self._bench.state.campaign.round
        if now is None:
            raise AssertionError("no round was begun")
        return now

    def _has_spare(self) -> bool:
        opening = self._opening() if self._bench.at_once > 1 else None
        return opening is not None and is_one_left(self._bench.state, opening.parent)


def over(now: Round) -> str:
    return f"round {now.number} is over, to be looked at"
