"""From which node a new branch starts, where that is not always the champion."""

from orchestrator.domain import events as e
from orchestrator.domain.frontier import Frontier, candidate, frontier_of
from orchestrator.domain.state import State


class BestAtTasks:
    """The frontier over tasks, kept as events come in: what it costs to draw from it does not grow with the campaign.

    It is a function of the state alone, so a resume goes on with the same draws.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._frontier = Frontier()
        self._of: tuple[int, str | None] | None = None

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.AttemptEnded):
            self._take(event.node)
        elif isinstance(event, e.JudgingEnded):
            # A node of another cohort that was run again in the present one.
            self._take(self._state.trials[event.trial].node)

    def start_of(self, branch: int) -> str | None:
        """The same node for the same branch of the same run and seed; None while no verdict has tasks."""
        run = self._state.run
        return self._present().draw(f"{run.seed}/{run.number}/branch {branch}")

    def _present(self) -> Frontier:
        """Another cohort's scores do not compare, so a new one begins with what was run again there."""
        run = self._state.run
        if self._of != (run.number, run.cohort):
            self._of = (run.number, run.cohort)
            self._frontier = frontier_of(self._state)
        return self._frontier

    def _take(self, name: str) -> None:
        merits = candidate(self._state.nodes[name], self._state.run)
        if merits:
            self._present().add(name, merits)
