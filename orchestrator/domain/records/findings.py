"""What was found out about a candidate beside its verdict."""

from typing import Any

from pydantic import BaseModel, Field


class Guard(BaseModel, extra="forbid", frozen=True):
    """A command that must pass for a candidate to be kept; `place` is the candidate's chamber or the judge's."""

    name: str
    command: tuple[str, ...]
    place: str = "chamber"
    limits: dict[str, Any] = Field(default_factory=dict)


class HeldOut(BaseModel, extra="forbid", frozen=True):
    """What the ladder answered about a node on the held-out split; the exact score is nowhere.

    `released` is the ladder's value from then on, None where nothing could be compared. `worse` is None unless a gate
    asked that, and not whether it is better. `fault` is a fixed code, and
    only ever the baseline's: of a candidate, no score and a score that is no better are not told apart.
    """

    query: int
    better: bool
    worse: bool | None = None
    released: float | None
    step: float
    fault: str = ""


class PartRecord(BaseModel, extra="forbid", frozen=True):
    """A part of a change: where it is, and what became of what there. `worth` has the metrics without it, where that
    was measured; `fate` says in words what happened then, where there are none.
    """

    where: str
    before: str
    after: str
    worth: dict[str, float] | None = None
    fate: str = ""


class Minimal(BaseModel, extra="forbid", frozen=True):
    """What a winner was found to consist of. `complete`: no single part can go; else `why` says what came between."""

    kept: tuple[PartRecord, ...]
    dropped: tuple[PartRecord, ...]
    complete: bool
    why: str = ""


class Certification(BaseModel, extra="forbid", frozen=True):
    """A test whether a candidate is better than a champion. `since` is how many trials its node had before it: only
    later ones count. `number` is the test's in the campaign; `reference` and `against` are what its level comes from.
    `blocks` is how many of them it has at most; 0 for a test of older ledgers, whose champion was measured beforehand.
    `both`: it may also prove the candidate worse.
    """

    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float
    since: int = 0
    blocks: int = 0
    both: bool = False
