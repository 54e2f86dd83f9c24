"""What a proposer offers: a point of the task's parameters, or a change to files as text."""

from typing import Self

from pydantic import BaseModel, Field, model_validator

Value = bool | int | float | str


class Proposal(BaseModel, extra="forbid", frozen=True):
    """`operator` and `description` say in few words what was done; `model` names the LLM, if one did it.

    `playbook` is the version that it was made with.
    """

    operator: str = Field(max_length=64)
    description: str = Field(max_length=500)
    params: dict[str, Value] | None = None
    text: str | None = None
    model: str | None = None
    playbook: int | None = None

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
