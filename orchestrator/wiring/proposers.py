"""Proposers by their names. Libraries that take long to load are loaded only for whoever asks for them."""

from orchestrator.change import Tree
from orchestrator.domain.metric import Ranking
from orchestrator.proposers import Grid, Injected, Proposer, Random
from orchestrator.proposers.mixed import Mixed
from orchestrator.task import Task, TaskError


def make_ranking(task: Task) -> Ranking:
    return Ranking(tuple(spec.metric() for spec in task.metrics), task.ranking.rule)


def changes_at_once(name: str, task: Task) -> int:
    """Of one asking; those beyond the first wait for the next attempts. In tuning they compete instead."""
    return task.model.proposals if name in ("llm", "llm-params") and task.tune is None else 1


def make_proposer(
    name: str, task: Task, *, control: bool = False, tree: Tree | None = None, agent: str | None = None
) -> Proposer:
    """Raises TaskError for one that needs a space where the task has none, or text where `tree` has none to change.

    An agent is only looked up: it works once it has a chamber, a line and its books (wiring/agents.py).
    """
    match name:
        case "inject":
            return Injected()
        case "operators":
            return _make_operators(task, tree)
        case "mixed":
            return Mixed(_make_sampler("tpe", task, control), _make_operators(task, tree))
        case "llm" | "llm-params":
            return _make_llm(name, task)
        case "agent":
            from orchestrator.agents.presets import Planned, agent_of

            return Planned(agent_of(task.agent, agent))
    return _make_sampler(name, task, control)


def _make_sampler(name: str, task: Task, control: bool) -> Proposer:
    if task.parameters is None and control:
        raise TaskError(
            f"the control {name} draws points of [parameters], and the task has none; add them, or leave it out"
        )
    if task.parameters is None:
        other = "operators, which changes code, or inject"
        raise TaskError(f"the proposer {name} needs [parameters] in the task; add them, or use --proposer {other}")
    space = task.parameters.space
    if name == "random":
        return Random(space, branching=not control)
    try:
        if name == "grid":
            return Grid(space, task.tune.trials if task.tune and not control else 1)
        from orchestrator.proposers.samplers import make_sampler

        return make_sampler(name, space, make_ranking(task))
    except ValueError as error:
        raise TaskError(f"parameters.space: {error}") from None


def _make_operators(task: Task, tree: Tree | None) -> Proposer:
    from orchestrator.proposers.operators import Operators, editable_texts

    left_out = task.parameters.file if task.parameters else None
    if tree is not None and not editable_texts(tree, task.policy(), left_out):
        raise TaskError(
            "the proposer operators needs text to change, and no editable file is text; add one to editable"
        )
    return Operators(task.policy(), left_out)


def _make_llm(name: str, task: Task) -> Proposer:
    """Raises TaskError where what a model must be told in any case fills more than half of what it may be told."""
    from orchestrator.proposers.llm import LlmCode, LlmParams

    made: LlmCode | LlmParams
    if name == "llm":
        made = LlmCode(task, task.policy())
    elif task.parameters is None:
        raise TaskError("the proposer llm-params needs [parameters] in the task; add them, or use --proposer llm")
    else:
        made = LlmParams(task, task.policy(), task.parameters.space)
    needed = 2 * made.fixed().tokens
    if needed > task.model.context:
        raise TaskError(
            f"model.context: the statement and the rules alone need {needed:,} tokens with room for as much again, "
            f"and {task.model.context:,} are allowed; raise it, or shorten the statement"
        )
    return made
