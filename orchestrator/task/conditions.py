"""Parameters that are there only while others have certain values: which are, in what order, and what cannot be.

All conditions of a parameter must hold, and those of what it depends on. So what it needs, in the end, is a set of
values for each of some others, and it can be there exactly when none of these sets is empty.
"""

from collections.abc import Iterable, Mapping

from orchestrator.domain.proposal import Value
from orchestrator.task.errors import Key, Wrong
from orchestrator.task.explaining import nearest
from orchestrator.task.space import Bool, Choice, Float, Int, Parameter

DEEPEST = 16
_SHOWN = 8

Needs = dict[str, tuple[Value, ...]]


def takes(parameter: Parameter, value: object) -> bool:
    """Whether a value, which a candidate may have written, is one of the parameter's."""
    match parameter:
        case Choice():
            return is_in(value, parameter.values)
        case Bool():
            return isinstance(value, bool)
        case Int():
            return type(value) is int and value in range(parameter.low, parameter.high + 1, parameter.step)
        case Float():
            return type(value) in (int, float) and parameter.low <= value <= parameter.high  # type: ignore[operator]


def is_in(value: object, values: Iterable[object]) -> bool:
    """Here 1, 1.0 and true are three values."""
    return any(type(it) is type(value) and it == value for it in values)


def in_order(space: Mapping[str, Parameter]) -> list[str]:
    """The names, each behind all that it depends on; as they stand where nothing depends on anything."""
    placed: dict[str, None] = {}
    waiting = dict(space)
    while waiting:
        ready = [name for name, it in waiting.items() if it.when.keys() <= placed.keys()]
        if not ready:
            raise ValueError(f"the conditions of {', '.join(list(waiting)[:_SHOWN])} go in a circle")
        for name in ready:
            placed[name] = None
            del waiting[name]
    return list(placed)


def is_there(parameter: Parameter, point: Mapping[str, object]) -> bool:
    """Whether it is, where the point holds all that is there of what it depends on."""
    return not parameter.when or all(name in point and is_in(point[name], it) for name, it in parameter.when.items())


def active_part(space: Mapping[str, Parameter], values: Mapping[str, object]) -> dict[str, Value]:
    """Of values that anybody may have written, those that belong to the space and to one another."""
    point: dict[str, Value] = {}
    for name in in_order(space):
        if name in values and takes(space[name], values[name]) and is_there(space[name], point):
            point[name] = values[name]  # type: ignore[assignment]  # takes() saw to it
    return {name: point[name] for name in space if name in point}


def is_point(space: Mapping[str, Parameter], point: Mapping[str, object]) -> bool:
    """Whether it has a value for everything that is there, and nothing else."""
    return len(active_part(space, point)) == len(point) and all(
        name in point or not is_there(it, point) for name, it in space.items()
    )


def needs_of(space: Mapping[str, Parameter]) -> dict[str, Needs]:
    """What each parameter asks of others, directly or by what it depends on."""
    needs: dict[str, Needs] = {}
    for name in in_order(space):
        mine: Needs = {}
        when = space[name].when
        for asked in (*(needs[other] for other in when), when):
            for other, values in asked.items():
                mine[other] = tuple(it for it in mine.get(other, values) if is_in(it, values))
        needs[name] = mine
    return needs


def check_conditions(space: Mapping[str, Parameter]) -> None:
    """Raises Wrong for a condition that names nothing, can never hold, or goes in a circle."""
    for name, parameter in space.items():
        for other, values in parameter.when.items():
            key = ("parameters", "space", name, "when", other)
            _check_named(name, other, space, key)
            if wrong := [value for value in values if not takes(space[other], value)]:
                raise Wrong(key, f"{_said(wrong[0])} is no value of {other}; write one that it can have")
    for name in space:
        if circle := _circle(name, space):
            raise Wrong(
                ("parameters", "space", name, "when"),
                f"goes in a circle ({' needs '.join(circle)}); remove one of the conditions",
            )
    for name, needs in needs_of(space).items():
        if never := [other for other, values in needs.items() if not values]:
            said = f"can never hold: it asks for different values of {never[0]} at once; change one of them"
            raise Wrong(("parameters", "space", name, "when"), said)
        if len(needs) > DEEPEST:
            said = f"depends on {len(needs)} others; {DEEPEST} are the most, so use fewer"
            raise Wrong(("parameters", "space", name, "when"), said)


def _check_named(name: str, other: str, space: Mapping[str, Parameter], key: Key) -> None:
    if other not in space:
        close = nearest(other, space)
        raise Wrong(key, f"is no parameter of the space; {f'did you mean {close}?' if close else 'name one of them'}")
    if other == name:
        raise Wrong(key, "is the parameter itself; name another one")
    if isinstance(space[other], Float):
        raise Wrong(key, "is a float, which has no values to list; name a choice, an int or a bool")


def _circle(name: str, space: Mapping[str, Parameter]) -> list[str]:
    """A way from a name back to itself, if there is one."""
    ways = [[name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for other in space[way[-1]].when:
            if other == name:
                return [*way, name]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []


def _said(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
