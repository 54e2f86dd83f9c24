"""The tables of those who share the dollars for models with the proposer."""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from orchestrator.task.sections import Section
from orchestrator.task.words import Name
from orchestrator.units import Money

_LEAST_THINKING = 1_024
_MOST_FOR_OTHERS = 0.9


class RoleSpec(Section):
    """One of those who share the model budget. `share` is its part of the dollars to begin with, `floor` what it always
    gets, `cap` what it never gets past; `usd` is what it may use for one review or one evolution.
    """

    models: tuple[Name, ...] | None = Field(default=None, min_length=1, max_length=16)
    usd: Annotated[Money, Field(gt=0, le=1e6)] = 0.1
    share: float = Field(default=0.1, ge=0, le=0.9, allow_inf_nan=False)
    floor: float = Field(default=0.02, ge=0, le=0.5, allow_inf_nan=False)
    cap: float = Field(default=0.5, ge=0, le=0.9, allow_inf_nan=False)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        return self._checked()

    def _checked(self) -> Self:
        if not self.floor <= self.share <= self.cap:
            text = f"floor {self.floor:g}, share {self.share:g} and cap {self.cap:g} are not in this order; change one"
            raise ValueError(text)
        return self


class VerifierSpec(RoleSpec):
    """Who looks at a change before a trial is paid for. `thinking` are the tokens to reason with; with 0 it reasons in
    its answer alone, for models that can do no other. After `holds` in a row the campaign waits for a person.

    It is asked once a change, so that a share beyond what that costs is not spent; its floor covers a review at half
    the price of a proposal.
    """

    share: float = Field(default=0.35, ge=0, le=0.9, allow_inf_nan=False)
    floor: float = Field(default=0.35, ge=0, le=0.5, allow_inf_nan=False)
    cap: float = Field(default=0.4, ge=0, le=0.9, allow_inf_nan=False)
    thinking: int = Field(default=2_048, ge=0, le=64_000)
    holds: int = Field(default=5, ge=1, le=1000)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        """Defaults give way to what is said of the others: a small share alone is a small floor, too."""
        names = ("floor", "share", "cap")
        said: dict[str, float] = {name: getattr(self, name) for name in names if name in self.model_fields_set}
        share = said.get("share", min(max(self.share, said.get("floor", 0.0)), said.get("cap", 1.0)))
        settled = {"floor": min(self.floor, share), "share": share, "cap": max(self.cap, share), **said}
        self.__dict__.update(settled)  # frozen to all others
        return self._checked()

    @field_validator("thinking")
    @classmethod
    def _enough_to_think(cls, value: int) -> int:
        if 0 < value < _LEAST_THINKING:
            raise ValueError(f"is 0 or at least {_LEAST_THINKING:,} tokens")
        return value


class Roles(Section):
    """None: nobody has that role. Users, who propose, get what is left."""

    evolver: RoleSpec | None = None
    verifier: VerifierSpec | None = None

    @model_validator(mode="after")
    def _leave_users_something(self) -> Self:
        if self.evolver and self.verifier and self.evolver.cap + self.verifier.cap > _MOST_FOR_OTHERS:
            caps = self.evolver.cap + self.verifier.cap
            raise ValueError(f"the caps of evolver and verifier are {caps:g} together; leave users at least a tenth")
        return self
