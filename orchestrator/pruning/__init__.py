"""Whether a trial is worth its time: rules over the curves that trials report. They may end one early, no more."""

from orchestrator.pruning.base import Decision, Peer, Peers, Rule, RuleContext
from orchestrator.pruning.crowd import Crowd
from orchestrator.pruning.watch import Watch

__all__ = ["Crowd", "Decision", "Peer", "Peers", "Rule", "RuleContext", "Watch"]
