"""The words that all records share, and what was spent."""

import operator
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel, Field

from orchestrator.domain.verdict import Mode

Record = TypeVar("Record")


class FieldOf(Generic[Record]):
    """What one field of a record holds. `**changes: FieldOf[Node]` takes the fields of a node by their names: mypy
    refuses one that is misspelt or mistyped.
    """


class Role(StrEnum):
    """Why a node exists. Only search and injected nodes draw from attempts; the control and minimised ones have
    pools of their own. A minimised node is its parent without what does nothing for the score.
    """

    BASELINE = "baseline"
    SEARCH = "search"
    CONTROL = "control"
    INJECTED = "injected"
    MINIMISED = "minimised"


class Purpose(StrEnum):
    """Why a trial runs. A re-run gives a node a verdict in a new cohort; a replay asks whether a score stands, a
    repeat measures once more what is noisy, a reference the champion beside it. Minimise leaves out parts of a change.
    """

    TUNE = "tune"
    SUBMIT = "submit"
    RERUN = "rerun"
    REPLAY = "replay"
    REPEAT = "repeat"
    REFERENCE = "reference"
    MINIMISE = "minimise"

    @property
    def mode(self) -> Mode:
        return Mode.TUNE if self is Purpose.TUNE else Mode.SUBMIT


class Phase(StrEnum):
    QUEUED = "queued"
    OPEN = "open"
    QUARANTINED = "quarantined"
    ENDED = "ended"


class Doubt(BaseModel, extra="forbid", frozen=True):
    """A rented chamber, or what stood, whose end nobody of ours saw: so much is booked for it at worst.

    `registry` is the provider's list that can tell later how long it lived.
    """

    chamber: str
    registry: str
    usd_per_second: float
    microdollars: int
    milliseconds: int = 0


class Spent(BaseModel, extra="forbid", frozen=True):
    """Measured outside the chamber; in the smallest units, so that sums are exact. `doubts` are parts of it."""

    microdollars: int = 0
    milliseconds: int = 0
    tokens: int = 0
    doubts: tuple[Doubt, ...] = Field(default=(), exclude_if=operator.not_)

    @property
    def plain(self) -> "Spent":
        return self.model_copy(update={"doubts": ()}) if self.doubts else self

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            microdollars=self.microdollars + other.microdollars,
            milliseconds=self.milliseconds + other.milliseconds,
            tokens=self.tokens + other.tokens,
            doubts=self.doubts + other.doubts,
        )

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(
            microdollars=self.microdollars - other.microdollars,
            milliseconds=self.milliseconds - other.milliseconds,
            tokens=self.tokens - other.tokens,
        )
