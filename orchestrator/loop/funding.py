"""How users fare, told to the allocator, and its answer: whether the evolver is to be paid for now."""

from orchestrator.budget.allocation import Allocator, Course, UserResult
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Ranking
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.playbook.results import result_of


class Funding:
    """Kept up with every event. It follows from the state alone: a resume makes the same of it."""

    def __init__(self, state: State, ranking: Ranking, allocator: Allocator) -> None:
        self._state = state
        self._ranking = ranking
        ended = [node for node in state.nodes.values() if self._is_users(node)]
        ended.sort(key=lambda node: (node.ended_at, node.number))
        self._course: Course = allocator.after([self._told(node) for node in ended])

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.AttemptEnded) and self._is_users(self._state.nodes[event.node]):
            self._course.hear(self._told(self._state.nodes[event.node]))

    def is_due(self, role: ModelRole) -> bool:
        return self._course.next_role(self._state.campaign.asked_by) is role

    @property
    def why(self) -> str:
        return self._course.why

    def _is_users(self, node: Node) -> bool:
        charged = node.phase is Phase.ENDED and node.ending is not None and node.ending.charged
        return charged and node.role is Role.SEARCH and run_of(node.id) == self._state.campaign.run

    def _told(self, node: Node) -> UserResult:
        result = result_of(self._state, node, self._ranking) or ()
        gain = next((it for it in result if it > 0), 0.0)
        return UserResult(
            microdollars=node.asked,
            gain=gain if node.kept else 0.0,
            usable=bool(node.ending and node.ending.scoreable),
            gamed=node.finding in ("hold", "flag") or node.ending is Ending.TAMPERED,
            playbook=node.playbook,
        )
