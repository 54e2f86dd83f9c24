"""Proposers by their names, wherever they come from."""

from orchestrator.change import Tree
from orchestrator.choices import PROPOSERS
from orchestrator.domain.metric import Ranking
from orchestrator.proposers import Proposer, ProposerContext
from orchestrator.proposers.outside import Outside
from orchestrator.task import Task
from orchestrator.wiring.plugins import make_by_name


def make_ranking(task: Task) -> Ranking:
    return Ranking(tuple(spec.metric() for spec in task.metrics), task.ranking.rule)


def changes_at_once(name: str, task: Task) -> int:
    """Of one asking; those beyond the first wait for the next attempts. In tuning they compete instead."""
    return task.model.proposals if task.tune is None and PROPOSERS.has(name, "offers_several") else 1


def make_proposer(
    name: str, task: Task, *, control: bool = False, tree: Tree | None = None, agent: str | None = None
) -> Proposer:
    """Raises TaskError for a name that nothing has, and for one that cannot work on this task: it needs a space where
    there is none, or text where `tree` has none to change.
    """
    context = ProposerContext(name, task, make_ranking(task), tree, control, agent)
    proposer: Proposer = make_by_name(PROPOSERS, name, context, Outside)
    return proposer
