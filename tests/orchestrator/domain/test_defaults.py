"""A row leaves out what its record has by default, so a default is a part of every row that was ever written."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from orchestrator.domain.records import Node, Role
from orchestrator.domain.state import TYPES, State

KNOWN: dict[str, dict[str, object]] = json.loads(Path(__file__).with_name("defaults.json").read_text("utf-8"))


def defaults(model: type[BaseModel]) -> dict[str, object]:
    fields = model.model_fields.items()
    given = {name: it.get_default(call_default_factory=True) for name, it in fields if not it.is_required()}
    found: dict[str, object] = to_jsonable_python(given)
    return found


def models() -> dict[str, type[BaseModel]]:
    """Those of rows, and of the records in them."""
    found: dict[str, type[BaseModel]] = {}
    left = list(TYPES.values())
    while left:
        model = left.pop()
        if model.__name__ not in found:
            found[model.__name__] = model
            left += [it for field in model.model_fields.values() for it in _within(field.annotation)]
    return found


def _within(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [it for part in getattr(annotation, "__args__", ()) for it in _within(part)]


@pytest.mark.parametrize("name", sorted(models()))
def test_defaults_stay(name: str) -> None:
    """One that changed would change what older rows say: name the field anew. A new one is added to defaults.json."""
    found = defaults(models()[name])
    kept = {field: value for field, value in KNOWN.get(name, {}).items() if field in found}
    assert found == kept, f"defaults.json has to have for {name}: {json.dumps(found)}"


def test_rows_have_no_defaults() -> None:
    state = State()
    state.new("node", "1.2", Node(id="1.2", parent="1", role=Role.SEARCH, number=1, kept=True))
    row = state.row(("node", "1.2"))
    assert json.loads(row or "") == {"id": "1.2", "parent": "1", "role": "search", "number": 1, "kept": True}
