"""A pruning rule: a trial that is behind all others at its step, by more than `by`, is ended early."""

from collections.abc import Sequence

from blastdoor import Decision, Peers, RuleContext
from orchestrator.domain.metric import Goal
from orchestrator.task import TaskError

blastdoor_interface = 1


class Behind:
    def __init__(self, context: RuleContext) -> None:
        self._sign = 1 if context.goal is Goal.HIGHER else -1
        self._startup = context.spec.startup
        own = dict(context.spec.options)  # [pruning] options = {by = 0.1}
        by = own.pop("by", 0.0)
        if own or not isinstance(by, int | float):
            raise TaskError("pruning.options of the rule behind are {by = 0.1}, and no others; mend them")
        self._by = by

    def decide(self, curve: Sequence[tuple[int, float]], peers: Peers) -> Decision:
        step, value = curve[-1]
        others = [there for peer in peers.scored if (there := peer.at(step)) is not None]
        if len(others) < self._startup or any(self._sign * (value - other) >= -self._by for other in others):
            return Decision(False)
        return Decision(True, f"step {step}: {value:g} is behind all {len(others)} peers")
