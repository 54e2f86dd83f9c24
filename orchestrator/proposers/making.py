"""How each proposer that is built in is made. Libraries that take long to load are loaded only for those who ask."""

from orchestrator.choices import PROPOSERS
from orchestrator.proposers.arms import Arms, PricedArm
from orchestrator.proposers.base import Proposer, ProposerContext
from orchestrator.proposers.grid import Grid
from orchestrator.proposers.injected import Injected
from orchestrator.proposers.random import Random
from orchestrator.task import Space, TaskError

# What asking costs beside a draw of our own, as long as nothing is known: a guess, which decides who comes first.
_MODELS_PRICE, _AGENTS_PRICE = 10.0, 50.0
_NO_ARMS = ("hybrid", "mixed", "grid", "inject")


def grid(context: ProposerContext) -> Proposer:
    tune, space = context.task.tune, _space("grid", context)
    try:
        return Grid(space, tune.trials if tune and not context.control else 1)
    except ValueError as error:
        raise _unfit(error) from None


def random(context: ProposerContext) -> Proposer:
    return Random(_space("random", context), branching=not context.control)


def tpe(context: ProposerContext) -> Proposer:
    return _sampler("tpe", context)


def cmaes(context: ProposerContext) -> Proposer:
    return _sampler("cmaes", context)


def gp(context: ProposerContext) -> Proposer:
    return _sampler("gp", context)


def thompson(context: ProposerContext) -> Proposer:
    return _sampler("thompson", context)


def de(context: ProposerContext) -> Proposer:
    return _sampler("de", context)


def mixed(context: ProposerContext) -> Proposer:
    arms = {"points": PricedArm(_sampler("tpe", context)), "code": PricedArm(operators(context))}
    return Arms(arms, drafts=True, priced=False)


def hybrid(context: ProposerContext) -> Proposer:
    """Raises TaskError for arms that are none, or cannot work on this task."""
    if context.make is None:
        raise AssertionError("nobody makes the arms")
    names = context.arms or _usual_arms(context)
    if twice := [name for name in names if names.count(name) > 1]:
        raise TaskError(f"search.arms: {twice[0]} is there twice; name each once")
    if inside := [name for name in names if name in _NO_ARMS]:
        raise TaskError(f"search.arms: {inside[0]} cannot be an arm; name others, like tpe, operators or llm")
    arms = {}
    for name in names:
        asks = PROPOSERS.has(name, "asks_a_model")
        try:
            made = context.make(name)
        except TaskError as error:
            raise TaskError(f"search.arms: {error}") from None
        price = _AGENTS_PRICE if name == "agent" else _MODELS_PRICE if asks else 1.0
        arms[name] = PricedArm(made, price, asks, PROPOSERS.has(name, "offers_several"))
    return Arms(arms, drafts=context.task.tune is not None)


def _usual_arms(context: ProposerContext) -> tuple[str, ...]:
    """What costs nothing to ask."""
    points = ("tpe",) if context.task.parameters else ()
    return (*points, "operators")


def inject(_: ProposerContext) -> Proposer:
    return Injected()


def operators(context: ProposerContext) -> Proposer:
    from orchestrator.proposers.operators import Operators, editable_texts

    task, tree = context.task, context.tree
    left_out = task.parameters.file if task.parameters else None
    if tree is not None and not editable_texts(tree, task.policy(), left_out):
        raise TaskError(
            "the proposer operators needs text to change, and no editable file is text; add one to editable"
        )
    return Operators(task.policy(), left_out)


def llm(context: ProposerContext) -> Proposer:
    from orchestrator.proposers.llm import LlmCode

    made = LlmCode(context.task, context.task.policy())
    _check_context(context, made.fixed().tokens)
    return made


def llm_params(context: ProposerContext) -> Proposer:
    from orchestrator.proposers.llm import LlmParams

    task = context.task
    if task.parameters is None:
        raise TaskError("the proposer llm-params needs [parameters] in the task; add them, or use --proposer llm")
    made = LlmParams(task, task.policy(), task.parameters.space)
    _check_context(context, made.fixed().tokens)
    return made


def _space(name: str, context: ProposerContext) -> Space:
    """Raises TaskError where the task has none."""
    task = context.task
    if task.parameters is None and context.control:
        raise TaskError(
            f"the control {name} draws points of [parameters], and the task has none; add them, or leave it out"
        )
    if task.parameters is None:
        other = "operators, which changes code, or inject"
        raise TaskError(f"the proposer {name} needs [parameters] in the task; add them, or use --proposer {other}")
    return task.parameters.space


def _sampler(name: str, context: ProposerContext) -> Proposer:
    from orchestrator.proposers.samplers import make_sampler

    space = _space(name, context)
    try:
        return make_sampler(name, space, context.ranking)
    except ValueError as error:
        raise _unfit(error) from None


def _unfit(error: ValueError) -> TaskError:
    return TaskError(f"parameters.space: {error}")


def _check_context(context: ProposerContext, fixed: int) -> None:
    """Raises TaskError where what a model must be told in any case fills more than half of what it may be told."""
    needed, allowed = 2 * fixed, context.task.model.context
    if needed > allowed:
        raise TaskError(
            f"model.context: the statement and the rules alone need {needed:,} tokens with room for as much again, "
            f"and {allowed:,} are allowed; raise it, or shorten the statement"
        )
