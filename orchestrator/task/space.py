"""The space that is searched: named parameters, each an int, a float, a choice or a switch; some only at times."""

import json
import math
from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, PlainValidator, model_validator

from orchestrator.domain.proposal import Value
from orchestrator.task.words import InOrder, Inside, Name

# Beyond it, programs that read JSON numbers as doubles see another number.
EXACT = 2**53
GRID_POINTS = 5

Whole = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Real = Annotated[float, Field(allow_inf_nan=False)]


def _plain_value(value: object) -> Value:
    fits = (
        isinstance(value, bool | str)
        or (isinstance(value, int) and abs(value) <= EXACT)
        or (isinstance(value, float) and math.isfinite(value))
    )
    if not fits:
        raise ValueError("must be text, a finite number, true or false")
    return value  # type: ignore[return-value]  # narrowed above


def _check_range(low: float, high: float) -> None:
    if low >= high:
        raise ValueError(f"low ({low:g}) must be below high ({high:g})")


Plain = Annotated[Value, PlainValidator(_plain_value)]
Listed = Annotated[tuple[Plain, ...], Field(min_length=1, max_length=10_000)]


class _Parameter(BaseModel, extra="forbid", frozen=True):
    """`when` names others, each with the values at which this one is there; all of them must hold."""

    when: Annotated[dict[Name, Listed], Field(max_length=16), InOrder] = Field(default_factory=dict)


class Int(_Parameter):
    """Whole numbers from `low` up to `high`, `step` apart; a grid takes `points` of them, or all."""

    type: Literal["int"] = "int"
    low: Whole
    high: Whole
    step: int = Field(default=1, ge=1, le=EXACT)
    points: int | None = Field(default=None, ge=1, le=10_000)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_range(self.low, self.high)
        return self


class Float(_Parameter):
    """Numbers from `low` to `high`, both included; a grid takes `points` of them, spread evenly (or by ratio)."""

    type: Literal["float"] = "float"
    low: Real
    high: Real
    log: bool = False
    points: int = Field(default=GRID_POINTS, ge=1, le=10_000)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.log and self.low <= 0:
            raise ValueError(f"log needs a low above 0, not {self.low:g}; raise low or leave out log")
        _check_range(self.low, self.high)
        return self


class Choice(_Parameter):
    """One of a few values."""

    type: Literal["choice"] = "choice"
    values: Listed

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        said = Counter(json.dumps(value) for value in self.values)
        if twice := [text for text, count in said.items() if count > 1]:
            raise ValueError(f"values has {twice[0]} twice; remove one")
        return self


class Bool(_Parameter):
    """True or false."""

    type: Literal["bool"] = "bool"


Parameter = Annotated[Int | Float | Choice | Bool, Field(discriminator="type")]
Space = Annotated[dict[Name, Parameter], Field(min_length=1, max_length=256), InOrder]


class Parameters(BaseModel, extra="forbid", frozen=True):
    """A point of `space` is written as a JSON object to `file`, which must be editable."""

    file: Inside
    space: Space
