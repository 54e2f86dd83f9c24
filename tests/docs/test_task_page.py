"""docs/task.md has every key of the task file with its default, and none that is not there."""

import copy
import tomllib
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from orchestrator.task import Parameter, Task
from orchestrator.task.crosschecks import check_sections
from orchestrator.task.reading import validated
from tests.docs.pages import ROOT, code_of, fences, tables

PAGE = ROOT / "docs" / "task.md"
TOP = "Top level"
SPACE = "parameters.space"
LEAST = {
    "name": "least",
    "statement": "the least that a task needs",
    "editable": ["params.json"],
    "trial": {"command": ["true"]},
    "judge": {"command": ["true"]},
}


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation, however they are wrapped."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Annotated, Union, UnionType, tuple, dict):
        for argument in get_args(annotation):
            yield from models(argument)


def key_of(name: str, field: FieldInfo) -> str:
    return field.alias or name


def places() -> dict[str, type[BaseModel]]:
    """Where each table of the file stands first, and its model; parameters of the space are looked at apart."""
    found: dict[str, type[BaseModel]] = {}
    space = set(models(Parameter))
    waiting: list[tuple[str, type[BaseModel]]] = [(TOP, Task)]
    while waiting:
        place, model = waiting.pop(0)
        found[place] = model
        for name, field in model.model_fields.items():
            prefix = "" if place == TOP else f"{place}."
            waiting += [
                (f"{prefix}{key_of(name, field)}", inner)
                for inner in models(field.annotation)
                if inner not in {*found.values(), *space, *(it for _, it in waiting)}
            ]
    return found


PLACES = places()


def documented() -> dict[str, dict[str, list[str]]]:
    """Place → key → its row."""
    found: dict[str, dict[str, list[str]]] = {}
    for table in tables(PAGE):
        if table.header[:2] == ["key", "type"]:
            place = code_of(table.heading)[0].strip("[]") if code_of(table.heading) else table.heading
            assert place not in found, f"{place} is there twice"
            found[place] = {code_of(row[0])[0]: row for row in table.rows}
    return found


DOCUMENTED = documented()


def test_keys() -> None:
    """Every table of the file has a table on the page, with every key in the order of the model, and none is invented.
    A default that is code is the model's own; a key is called required where it is.
    """
    assert set(DOCUMENTED) == set(PLACES)
    for place, model in PLACES.items():
        assert list(DOCUMENTED[place]) == [key_of(*item) for item in model.model_fields.items()], place
        for name, field in model.model_fields.items():
            check_default(field, DOCUMENTED[place][key_of(name, field)][2])


def check_default(field: FieldInfo, told: str) -> None:
    assert (told == "required") == field.is_required()
    if told.startswith("`") and code_of(told) == [told.strip("`")]:
        value = tomllib.loads(f"x = {told.strip('`')}")["x"]
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        assert TypeAdapter(kind).validate_python(value) == field.get_default(call_default_factory=True)
    elif not field.is_required():
        default = field.get_default(call_default_factory=True)
        assert default in (None, (), {}) or isinstance(default, BaseModel | tuple), f"{told}: the default is {default}"


def test_parameters() -> None:
    """The keys of a parameter, for each of its types."""
    [found] = [table for table in tables(PAGE) if table.header[:2] == ["key", "of"]]
    assert code_of(found.heading) == [f"[{SPACE}]"]
    told = {(kind, code_of(row[0])[0]): row[3] for row in found.rows for kind in code_of(row[1])}
    known: dict[tuple[str, str], FieldInfo] = {}
    for model in models(Parameter):
        kind = model.model_fields["type"].default
        known |= {(kind, key_of(*item)): item[1] for item in model.model_fields.items()}
    assert told.keys() == known.keys()
    for place, field in known.items():
        if place[1] != "type":
            check_default(field, told[place])


@pytest.mark.parametrize("text", fences(PAGE, "toml"))
def test_examples(text: str) -> None:
    """Every example is TOML, and part of a task that is valid."""
    raw = merged(copy.deepcopy(LEAST), tomllib.loads(text))
    if "parameters" in raw:
        raw["editable"].append(raw["parameters"]["file"])
    check_sections(validated(raw))


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    for name, value in above.items():
        below[name] = merged(below[name], value) if isinstance(below.get(name), dict) else value
    return below
