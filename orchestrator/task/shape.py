"""The shape of the task file, read from the models: which keys a table knows, and in which unit a key is written."""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from orchestrator.task.model import Task
from orchestrator.units import format_duration, parse_money
from sandbox.units import format_size, parse_duration, parse_size

Unit = tuple[str, Callable[[float], str]]

_UNITS: dict[object, Unit] = {
    parse_size: ('a size like "512MiB"', format_size),
    parse_duration: ('a duration like "90s"', format_duration),
    parse_money: ('a sum of money like "$5"', lambda dollars: f"${dollars:,g}"),
}
_NUMBER: Unit = ("", lambda number: f"{number:,.16g}")


def unit_of(location: Sequence[str | int]) -> Unit:
    """How people write the value at a validator's location: an example, and its form for a number."""
    for place in _places(location[:-1]):
        if field := _fields(place).get(str(location[-1])):
            marks = [*field.metadata, *_metadata(field.annotation)]
            parsers = [mark.func for mark in marks if isinstance(mark, BeforeValidator)]
            if known := [_UNITS[parser] for parser in parsers if parser in _UNITS]:
                return known[0]
    return _NUMBER


def _metadata(annotation: Any) -> list[Any]:
    inner = [mark for argument in get_args(annotation) for mark in _metadata(argument)]
    return [*getattr(annotation, "__metadata__", ()), *inner]


def known_keys(location: Sequence[str | int]) -> list[str]:
    """The keys of the table at a validator's location."""
    return [key for place in _places(location) for key in _fields(place)]


def _places(location: Sequence[str | int]) -> list[Any]:
    places: list[Any] = [Task]
    for part in location:
        places = [inner for place in places for inner in _step(place, part)]
    return places


def _fields(place: Any) -> dict[str, FieldInfo]:
    """By the key as it is written; none where the place is no table."""
    if not (isinstance(place, type) and issubclass(place, BaseModel)):
        return {}
    return {field.alias or name: field for name, field in place.model_fields.items()}


def _step(place: Any, part: str | int) -> list[Any]:
    """What lies at this part of a location: a field of a model, an entry of a container, or an alternative."""
    if get_origin(place) in (dict, tuple):
        return _options(get_args(place)[1 if get_origin(place) is dict else 0])
    if str(part).startswith("<"):
        return [place]
    fields = _fields(place)
    if field := fields.get(str(part)):
        return _options(field.annotation)
    tag = fields.get("type")
    return [place] if tag and part in get_args(tag.annotation) else []


def _options(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, without their wrapping."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [option for inner in get_args(annotation) for option in _options(inner)]
    return [annotation]
