"""Points in a task's space of parameters: the grid's, and random ones."""

import math
import random
from collections.abc import Iterator, Mapping

from orchestrator.domain.proposal import Value
from orchestrator.task import Bool, Choice, Float, Int, Parameter

Point = dict[str, Value]
_TRIES = 20


def grid_size(space: Mapping[str, Parameter]) -> int:
    return math.prod(len(steps(parameter)) for parameter in space.values())


def grid_point(space: Mapping[str, Parameter], index: int) -> Point:
    """The grid's point of that number, the last parameter running fastest; no list of them is ever made."""
    point: Point = {}
    for name, parameter in reversed(list(space.items())):
        values = steps(parameter)
        index, place = divmod(index, len(values))
        point[name] = values[place]
    return {name: point[name] for name in space}


def random_point(space: Mapping[str, Parameter], rng: random.Random) -> Point:
    return {name: draw(parameter, rng) for name, parameter in space.items()}


def resampled(space: Mapping[str, Parameter], rng: random.Random, point: Mapping[str, Value]) -> Point:
    """Some of the parameters drawn anew, the others stay. Another point than before, unless there is hardly any."""
    names = list(space)
    for _ in range(_TRIES):
        chosen = {rng.choice(names), *(name for name in names if rng.random() < 0.5)}
        drawn = {
            name: draw(parameter, rng) if name in chosen or name not in point else point[name]
            for name, parameter in space.items()
        }
        if drawn != point:
            break
    return drawn


def steps(parameter: Parameter) -> list[Value]:
    """The values that a grid takes of a parameter."""
    match parameter:
        case Choice():
            return list(parameter.values)
        case Bool():
            return [False, True]
        case Int():
            every = range(parameter.low, parameter.high + 1, parameter.step)
            return [every[place] for place in _spread(len(every), parameter.points)]
        case Float():
            last = max(1, parameter.points - 1)
            return [_at(parameter, place / last if parameter.points > 1 else 0.5) for place in range(parameter.points)]


def holds(parameter: Parameter, value: object) -> bool:
    """Whether a value, which a candidate may have written, is one of the parameter's."""
    match parameter:
        case Choice():
            return any(type(it) is type(value) and it == value for it in parameter.values)
        case Bool():
            return isinstance(value, bool)
        case Int():
            return type(value) is int and value in range(parameter.low, parameter.high + 1, parameter.step)
        case Float():
            return type(value) in (int, float) and parameter.low <= value <= parameter.high  # type: ignore[operator]


def draw(parameter: Parameter, rng: random.Random) -> Value:
    match parameter:
        case Choice():
            return rng.choice(parameter.values)
        case Bool():
            return rng.random() < 0.5
        case Int():
            return rng.randrange(parameter.low, parameter.high + 1, parameter.step)
        case Float():
            return _at(parameter, rng.random())


def shown_point(point: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in point.items())[:400]


def _shown(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _at(parameter: Float, share: float) -> float:
    low, high = parameter.low, parameter.high
    if parameter.log:
        value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    else:
        value = low + share * (high - low)
    return min(high, max(low, value))


def _spread(length: int, points: int | None) -> Iterator[int]:
    """`points` places from first to last, as even as whole numbers allow; all of them where there are not more."""
    if points is None or points >= length:
        yield from range(length)
    elif points == 1:
        yield length // 2
    else:
        yield from (round(number * (length - 1) / (points - 1)) for number in range(points))
