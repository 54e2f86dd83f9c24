"""What calls to a model used, and who made them. Counted by the gateway, never told by an agent."""

from enum import StrEnum

from pydantic import BaseModel


class ModelRole(StrEnum):
    """Three roles share the model budget: users propose changes, evolvers edit the playbook, verifiers check."""

    USER = "user"
    EVOLVER = "evolver"
    VERIFIER = "verifier"


class Tokens(BaseModel, extra="forbid", frozen=True):
    """As the provider bills them: each kind has its own price, and none is counted in another."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(**{name: getattr(self, name) + getattr(other, name) for name in Tokens.model_fields})


class CallEnding(StrEnum):
    """How a call ended. Cut: without a last word on usage, so that it is booked at its worst case."""

    COMPLETE = "complete"
    CUT = "cut"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
