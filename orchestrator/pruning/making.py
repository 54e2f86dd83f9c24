"""How each rule is made. Optuna and numpy are loaded here, and only for a task that prunes."""

from collections.abc import Sequence

import structlog

from orchestrator.domain.reports import Point
from orchestrator.pruning.base import KEEP, Decision, Peers, Rule, RuleContext
from orchestrator.registry import told

_log = structlog.get_logger()


def median(context: RuleContext) -> Rule:
    from orchestrator.pruning.optunas import Median

    return Median(context.goal, context.spec.startup)


def halving(context: RuleContext) -> Rule:
    from orchestrator.pruning.optunas import Halving

    return Halving(context.goal, context.spec.startup, context.spec.reduction or 4, context.spec.least or 1)


def wilcoxon(context: RuleContext) -> Rule:
    from orchestrator.pruning.wilcoxon import Wilcoxon

    return Wilcoxon(context.goal, context.spec.startup, context.spec.threshold or 0.1)


def curve(context: RuleContext) -> Rule:
    from orchestrator.pruning.extrapolation import Extrapolation

    return Extrapolation(context.goal, context.spec.startup, context.spec.threshold or 0.05)


class Outside:
    """A rule that others wrote. All that it can do is end a trial early: one that fails ends none, and is named."""

    def __init__(self, rule: Rule, who: str) -> None:
        self._rule = rule
        self._who = who
        self._failed = False
        if not hasattr(rule, "decide"):
            raise TypeError("it has no decide, which a rule needs")

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        try:
            prune, why = self._rule.decide(curve, peers)
            return Decision(bool(prune), str(why))
        except Exception as error:  # noqa: BLE001  somebody else's code, of which no trial depends
            if not self._failed:
                _log.warning(f"{self._who} failed, so it ends no trial", error=told(error))
            self._failed = True
            return KEEP
