"""Proposers by their names, wherever they come from."""

from orchestrator.change import Tree
from orchestrator.choices import PROPOSERS
from orchestrator.domain.metric import Ranking
from orchestrator.proposers import Proposer, ProposerContext
from orchestrator.proposers.outside import Outside
from orchestrator.task import Task, TaskError
from orchestrator.wiring.options import ARMED, Options
from orchestrator.wiring.plugins import make_by_name


def make_ranking(task: Task) -> Ranking:
    return Ranking(tuple(spec.metric() for spec in task.metrics), task.ranking.rule)


def changes_at_once(options: Options, task: Task) -> int:
    """Of one asking; those beyond the first wait for the next attempts. In tuning they compete instead."""
    several = any(PROPOSERS.has(name, "offers_several") for name in options.proposers)
    return task.model.proposals if task.tune is None and several else 1


def hints_of(options: Options) -> str | None:
    """Which hints of a profile the search takes; None where nobody asks for one."""
    takes = any(PROPOSERS.has(name, "takes_hints") for name in options.arms or (options["proposer"],))
    return options["hints"] if takes and options["hints"] != "off" else None


def make_searcher(options: Options, task: Task, tree: Tree | None = None) -> Proposer:
    """The one that the search asks. Raises TaskError like `make_proposer`, and for arms that nothing works with."""
    if options.arms and options["proposer"] != ARMED:
        raise TaskError(f"arms mean nothing to the proposer {options['proposer']}; use them with --proposer {ARMED}")
    return make_proposer(options["proposer"], task, tree=tree, agent=options["agent"], arms=options.arms)


def make_proposer(
    name: str,
    task: Task,
    *,
    control: bool = False,
    tree: Tree | None = None,
    agent: str | None = None,
    arms: tuple[str, ...] = (),
) -> Proposer:
    """Raises TaskError for a name that nothing has, and for one that cannot work on this task: it needs a space where
    there is none, or text where `tree` has none to change.
    """

    def make(arm: str) -> Proposer:
        return make_proposer(arm, task, tree=tree, agent=agent)

    context = ProposerContext(name, task, make_ranking(task), tree, control, agent, arms, make)
    proposer: Proposer = make_by_name(PROPOSERS, name, context, Outside)
    return proposer
