"""What a proposer offers: a point of the task's parameters, or a change to files as text, and what was drawn for it."""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, Field, model_validator

Value = bool | int | float | str

# The operator of a change that a person brings.
BROUGHT = "inject"


class Arm(BaseModel, extra="forbid", frozen=True):
    """What was chosen in a slot, like "operator". `among` has all that was on offer, with the weight that each has
    before anything is known; `p` is the probability under which this one was drawn.
    """

    option: str
    p: float
    among: Mapping[str, float]


class Knob(BaseModel, extra="forbid", frozen=True):
    """A number that was drawn between two bounds; `mean` and `spread` are those of its logarithm, `at_first` is what it
    would be if nothing were known.
    """

    value: float
    mean: float
    spread: float
    at_first: float
    least: float
    most: float


class Drawn(BaseModel, extra="forbid", frozen=True):
    """All that was chosen for one proposal, by slot and by knob."""

    arms: Mapping[str, Arm] = {}
    knobs: Mapping[str, Knob] = {}


class Proposal(BaseModel, extra="forbid", frozen=True):
    """`operator` and `description` say in few words what was done; `model` names the LLM, if one did it.

    `playbook` is the version that it was made with, `drawn` what was chosen by chance to make it.
    """

    operator: str = Field(max_length=64)
    description: str = Field(max_length=500)
    params: dict[str, Value] | None = None
    text: str | None = None
    model: str | None = None
    playbook: int | None = None
    drawn: Drawn | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.params is None) == (self.text is None):
            raise ValueError("a proposal has either params or a text")
        for said in (self.operator, self.description, self.model or "", self.text or ""):
            if not is_text(said):
                raise ValueError("a proposal is text that can be written down; half a character cannot")
        return self


def is_text(said: str) -> bool:
    """Whether it can be written as UTF-8; a lone surrogate cannot."""
    try:
        said.encode()
    except UnicodeEncodeError:
        return False
    return True
