"""A proposer: one parameter of the parent, one step to the side."""

import json
import random
from collections.abc import Sequence

from blastdoor import Brief, ProposerContext
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.task import Bool, Choice, Int, Parameter, TaskError

blastdoor_interface = 1


class Neighbour:
    """The class itself is the factory: it is called with the context."""

    serial = False
    branching = True
    needs_space = True

    def __init__(self, context: ProposerContext) -> None:
        if context.task.parameters is None:
            raise TaskError("the proposer neighbour needs [parameters] in the task; add them")
        self._file = context.task.parameters.file
        self._space = context.task.parameters.space
        if any(parameter.when for parameter in self._space.values()):
            raise TaskError("the proposer neighbour cannot do with `when` in [parameters]; use another proposer")

    def exhausted(self, number: int) -> str | None:
        del number  # there is always a step to try
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        # The same seed and number give the same step, so that a resume repeats nothing.
        rng = random.Random(f"{brief.seed}/{brief.number}/{brief.again}")
        point = dict(brief.parent_params or self._begun(brief))
        name = rng.choice(list(self._space))
        point[name] = beside(self._space[name], point[name], rng)
        return [Proposal(operator="neighbour", description=f"{name}={point[name]}", params=point)]

    def _begun(self, brief: Brief) -> dict[str, Value]:
        """What the workspace says, where it is a point at all."""
        said = json.loads(brief.tree[self._file].data)
        return {name: said.get(name, first(parameter)) for name, parameter in self._space.items()}


def first(parameter: Parameter) -> Value:
    if isinstance(parameter, Choice):
        return parameter.values[0]
    return False if isinstance(parameter, Bool) else parameter.low


def beside(parameter: Parameter, value: Value, rng: random.Random) -> Value:
    if isinstance(parameter, Bool):
        return not value
    if isinstance(parameter, Choice):
        return rng.choice([it for it in parameter.values if it != value] or [value])
    by = parameter.step if isinstance(parameter, Int) else (parameter.high - parameter.low) / 20
    moved = float(value) + rng.choice((-by, by))
    kept = min(max(moved, parameter.low), parameter.high)
    return round(kept) if isinstance(parameter, Int) else kept
