"""Points in a task's space of parameters: the grid's, and random ones. What is not there at a point is not in it."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.domain.proposal import Value
from orchestrator.proposers.points import Point, Points
from orchestrator.task import Bool, Choice, Float, Int, Parameter, in_order, is_there

_TRIES = 20


def grid(space: Mapping[str, Parameter]) -> Points:
    """Its points in order, the last parameter running fastest."""
    return Points(space, {name: steps(parameter) for name, parameter in space.items()})


def random_point(space: Mapping[str, Parameter], rng: random.Random) -> Point:
    return _filled(space, lambda name: draw(space[name], rng))


def resampled(space: Mapping[str, Parameter], rng: random.Random, point: Mapping[str, Value]) -> Point:
    """Some of the parameters drawn again, the others stay. Another point than before, unless there is hardly any."""
    drawn = _some_redrawn(space, rng, point)
    for _ in range(_TRIES - 1):
        if drawn != point:
            break
        drawn = _some_redrawn(space, rng, point)
    return drawn


def _some_redrawn(space: Mapping[str, Parameter], rng: random.Random, point: Mapping[str, Value]) -> Point:
    names = list(space)
    chosen = {rng.choice(names), *(name for name in names if rng.random() < 0.5)}
    return _filled(space, lambda name: point[name] if name in point and name not in chosen else draw(space[name], rng))


def _filled(space: Mapping[str, Parameter], value: Callable[[str], Value]) -> Point:
    """A value for everything that is there, asked for behind what it depends on."""
    point: Point = {}
    for name in in_order(space):
        if is_there(space[name], point):
            point[name] = value(name)
    return {name: point[name] for name in space if name in point}


def steps(parameter: Parameter) -> Sequence[Value]:
    """The values that a grid takes of a parameter."""
    match parameter:
        case Choice():
            return list(parameter.values)
        case Bool():
            return [False, True]
        case Int():
            every = every_int(parameter)
            if parameter.points is None or parameter.points >= len(every):
                return every
            return [every[place] for place in _spread(len(every), parameter.points)]
        case Float():
            last = max(1, parameter.points - 1)
            return [
                at_share(parameter, place / last if parameter.points > 1 else 0.5) for place in range(parameter.points)
            ]


def listed(parameter: Parameter) -> Sequence[Value]:
    """Every value that it can have, in order; none for a real number, which has no list."""
    match parameter:
        case Choice():
            return parameter.values
        case Bool():
            return (False, True)
        case Int():
            return every_int(parameter)
        case Float():
            return ()


def every_int(parameter: Int) -> range:
    return range(parameter.low, parameter.high + 1, parameter.step)


def draw(parameter: Parameter, rng: random.Random) -> Value:
    match parameter:
        case Choice():
            return rng.choice(parameter.values)
        case Bool():
            return rng.random() < 0.5
        case Int():
            return rng.randrange(parameter.low, parameter.high + 1, parameter.step)
        case Float():
            return at_share(parameter, rng.random())


def shown_point(point: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in point.items())[:400]


def _shown(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def at_share(parameter: Float, share: float) -> float:
    low, high = parameter.low, parameter.high
    if parameter.log:
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    else:
        value = low + share * (high - low)
    return min(high, max(low, value))


def _spread(length: int, points: int) -> Iterator[int]:
    """`points` places from first to last, as even as whole numbers allow."""
    if points == 1:
        yield length // 2
    else:
        yield from (round(number * (length - 1) / (points - 1)) for number in range(points))
