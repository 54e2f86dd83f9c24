"""Every sum of money, duration and size of the task file has bounds, and whoever passes one is told so in its unit."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, BeforeValidator

from orchestrator.task import Task, TaskError, load_task
from orchestrator.units import parse_money
from sandbox.units import parse_duration, parse_size
from tests.orchestrator.task.conftest import Make

# As people write them: the least and the most that can be read, and how a bound is told.
UNITS: dict[Any, tuple[str, str, str]] = {
    parse_money: ("$0", "$999,999,999", r"\$[0-9.,e+]+"),
    parse_duration: ("0s", "999999d", r"([0-9]+[dhms])+"),
    parse_size: ("0B", "999999TiB", r"[0-9]+([KMGT]i)?B"),
}
# What a table needs besides, and the tables of the combination stage that are those of a task.
NEEDED = {
    "guards": "[[guards]]\nname = 'a'\ncommand = 'b'\n",
    "combine": "[combine]\neditable = ['a']\ntrial = {command = 'b'}\n",
}
SAME = ("combine.tune.", "combine.guards.")


def marks_of(annotation: Any) -> list[Any]:
    inner = [mark for argument in get_args(annotation) for mark in marks_of(argument)]
    marks = getattr(annotation, "__metadata__", ())
    return [*(flat for mark in marks for flat in getattr(mark, "metadata", [mark])), *inner]


def tables_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in tables_in(argument)]


def with_units(table: type[BaseModel], at: str = "") -> Iterator[tuple[str, Any, float, float]]:
    """Each key with a unit: its place, what reads it, and its bounds."""
    for name, field in table.model_fields.items():
        marks: list[Any] = [*field.metadata, *marks_of(field.annotation)]
        for reader in [mark.func for mark in marks if isinstance(mark, BeforeValidator) and mark.func in UNITS]:
            least = max(getattr(it, "ge", getattr(it, "gt", 0.0) + 1e-9) for it in marks if type(it) in (Ge, Gt))
            yield f"{at}{name}", reader, least, min(getattr(it, "le", 0.0) for it in marks if type(it) in (Le,))
        for inner in tables_in(field.annotation):
            yield from with_units(inner, f"{at}{name}.")


def beyond() -> Iterator[tuple[str, Any, str]]:
    """A key, what reads it, and a value outside of its bounds, as text and as a number."""
    for key, reader, least, most in [it for it in with_units(Task) if not it[0].startswith(SAME)]:
        low, high, _ = UNITS[reader]
        values = [f'"{low}"'] if least > 0 else []
        values += [f'"{high}"'] if most < reader(high) else []
        for value in [*values, "-1", str(2**60)]:
            yield key, reader, value


def test_all_sections_are_looked_at() -> None:
    """Money, durations and sizes, in tables, lists of tables and tables of tables."""
    keys = {key for key, *_ in with_units(Task)}
    assert keys >= {"model.usd", "roles.verifier.usd", "roles.evolver.usd", "budget.wall", "stall.window"}
    assert keys >= {"limits.memory", "guards.limits.wall", "agent.limits.log_bytes", "budget.stall_losses"}


def test_beyond_its_bounds(make: Make) -> None:
    """One line that names the key and says the bound as people would write it, and the value."""
    for key, reader, value in beyond():
        table, _, name = key.rpartition(".")
        with pytest.raises(TaskError) as caught:
            load_task(make(f"{NEEDED.get(table.split('.')[0], '')}[{table}]\n{name} = {value}\n"))
        place = re.escape(key.replace("guards.", "guards[0]."))
        told = rf"blastdoor\.toml:[0-9]+: {place}: must be (more than|at least|at most) {UNITS[reader][2]}, not \S+$"
        assert re.search(told, str(caught.value)), (key, value)
