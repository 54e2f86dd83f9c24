"""Numbers of a space from 0 to 1, and back."""

import math

from orchestrator.domain.proposal import Value
from orchestrator.proposers.space import at_share, every_int
from orchestrator.task import Float, Int


def to_unit(parameter: Float | Int, value: Value) -> float:
    if isinstance(parameter, Int):
        every = every_int(parameter)
        return every.index(int(value)) / max(1, len(every) - 1)
    low, high, number = parameter.low, parameter.high, float(value)
    if parameter.log:
        low, high, number = math.log(low), math.log(high), math.log(number)
    return (number - low) / (high - low)


def from_unit(parameter: Float | Int, share: float) -> Value:
    share = min(1.0, max(0.0, share))
    if isinstance(parameter, Float):
        return at_share(parameter, share)
    every = every_int(parameter)
    return every[min(len(every) - 1, round(share * (len(every) - 1)))]
