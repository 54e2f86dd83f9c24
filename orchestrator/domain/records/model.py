"""What is kept of models and of the playbook."""

from pydantic import BaseModel

from orchestrator.domain.model_use import ModelRole, Tokens
from orchestrator.domain.records.base import Spent

# What the holds of evolving the playbook are called: it belongs to no node.
EVOLVING = "evolve-"


class OpenCall(BaseModel, extra="forbid", frozen=True):
    """A call to a model that has not ended; if nobody hears of it again, it is booked at its worst case."""

    node: str
    role: ModelRole
    model: str
    worst: Spent


class Asked(BaseModel, extra="forbid", frozen=True):
    """What calls of one role to one model came to."""

    calls: int = 0
    spent: Spent = Spent()
    tokens: Tokens = Tokens()


class PlaybookVersion(BaseModel, extra="forbid", frozen=True):
    """Of a challenger: `level` and `pairs` are those of its test, `given` are the attempts dealt out in it, in
    order, to itself and to the present version, and `fate` says what became of it.
    """

    number: int
    files: str
    parent: int | None
    by: str
    why: str
    at: str
    level: float | None = None
    pairs: int = 0
    given: tuple[str, ...] = ()
    fate: str = ""
