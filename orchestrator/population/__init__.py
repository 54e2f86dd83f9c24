"""Which of its members a population builds on, and what is too much like one of them to be run."""

from orchestrator.population.base import Member, ParentContext, ParentRule

__all__ = ["Member", "ParentContext", "ParentRule"]
