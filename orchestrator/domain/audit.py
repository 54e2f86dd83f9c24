"""What became of a judge's audit, as it is kept: a strict record, and what campaigns and gates say of it.

A record is a file, so anybody may have written it. It is read as a whole or not at all, its figures must agree with
each other, and it counts only for the judge whose digests it has.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, FiniteFloat, JsonValue, NonNegativeInt, model_validator

FORMAT: Literal["blastdoor audit"] = "blastdoor audit"
VERSION: Literal[2] = 2
# Digests of the task's parts that an audit is about, and of what a trial of it runs against.
PARTS = ("task", "judge", "gold", "inputs")
TERMS = ("image", "judge", "gold", "inputs")
_NAMES = {"task": "the task file", "judge": "the judge", "gold": "the gold", "inputs": "the inputs"}
_TERM_NAMES = {**_NAMES, "image": "the candidate's image", "judge": "the judge's command or image"}

_Text = Annotated[str, Field(max_length=100_000)]
_Change = Annotated[str, Field(max_length=1_000_000)]
_Digest = Annotated[str, Field(max_length=200)]


class _Strict(BaseModel, extra="forbid", frozen=True, strict=True):
    """Exact types: what is nearly right was written by somebody else."""


class Asked(_Strict):
    """What `audit` was asked for. `only` and `quick` leave adversaries out."""

    runs: NonNegativeInt
    quick: bool = False
    only: tuple[_Text, ...] = ()
    accept: tuple[_Text, ...] = ()
    proposer: str | None = None

    @property
    def part(self) -> str:
        """Why it is a part of an audit only; empty where it is whole."""
        if self.only:
            more = f" and {len(self.only) - 2} more" if len(self.only) > 2 else ""
            return f"only {', '.join(f'“{name}”' for name in self.only[:2])}{more}"
        return "the quick adversaries only" if self.quick else ""

    def covers(self, other: "Asked") -> bool:
        """Whether it put all adversaries before the judge that the other did."""
        if not self.part:
            return True
        quick = other.quick or not self.quick
        return quick and (not self.only or bool(other.only)) and set(other.only) <= set(self.only or other.only)


class Hole(_Strict):
    """A way to cheat that gained. `file` is the name of its change beside the report, where there is one."""

    adversary: _Text
    way: _Text
    how: _Text
    metrics: dict[str, FiniteFloat]
    mend: _Text
    accepted: bool
    reproduce: _Text
    change: _Change | None = None
    file: _Text | None = None


class Untried(_Strict):
    """An adversary of which not every way came before the judge: it neither gained nor was held against."""

    adversary: _Text
    why: _Text


class AuditRow(_Strict):
    """What a person was told; nothing that the judge printed is in it."""

    section: _Text
    sign: _Text
    text: _Text
    advice: _Text = ""
    facts: dict[str, JsonValue] = Field(default_factory=dict)


class AuditRecord(_Strict):
    """`fingerprint` has what the baseline ran against; `deaf`: every cheat got the baseline's score."""

    format: Literal["blastdoor audit"] = FORMAT
    version: Literal[2] = VERSION
    blastdoor: _Text
    ended_at: _Text
    task: _Text
    good: bool
    why: _Text = ""
    held: NonNegativeInt
    tried: NonNegativeInt
    deaf: bool = False
    asked: Asked
    untried: tuple[Untried, ...] = ()
    holes: tuple[Hole, ...] = ()
    baseline: dict[str, FiniteFloat] | None = None
    floor: dict[str, FiniteFloat] | None = None
    digests: dict[str, _Digest]
    fingerprint: dict[str, _Digest] = Field(default_factory=dict)
    rows: tuple[AuditRow, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        gained = {it.adversary for it in self.holes}
        if self.held + len(gained) != self.tried:
            raise ValueError("held and the holes are not what was tried")
        if any(it.accepted is not (it.adversary in self.asked.accept) for it in self.holes):
            raise ValueError("a hole is accepted exactly where --accept named it")
        if self.good is not self.is_good:
            raise ValueError("good is not what the rest says")
        return self

    @property
    def is_good(self) -> bool:
        open_ = [it for it in self.untried if it.adversary not in self.asked.accept]
        tried = not self.why and self.tried > 0 and not open_
        failed = any(row.sign == "fail" for row in self.rows)
        return tried and not failed and not self.deaf and all(it.accepted for it in self.holes)

    @property
    def faults(self) -> list[str]:
        """What is wrong with the baseline, whoever the judge holds against."""
        return [row.text for row in self.rows if (row.section, row.sign) == ("wiring", "fail")]

    @property
    def score(self) -> str:
        if not self.tried:
            return f"nothing could be tried{f': {self.why}' if self.why else ''}"
        more = f", {len(self.untried)} could not be tried" if self.untried else ""
        return f"held against {self.held} of {self.tried}{more}{', but the baseline is at fault' * bool(self.faults)}"

    @property
    def conclusion(self) -> str:
        """The last line of `audit`: it is that the judge holds exactly where the audit is good."""
        if not self.tried:
            return f"not tried: {self.why or 'no adversary that was asked for has anything to do here'}"
        if self.good:
            return f"the judge holds: {self.score}"
        if self.deaf or not all(it.accepted for it in self.holes):
            return f"the judge can be cheated: {self.score}"
        return f"{'not ready' if self.faults else 'not all could be tried'}: {self.score}"

    def other_parts(self, digests: Mapping[str, str]) -> list[str]:
        """Which parts of the task it is not about, in words."""
        return [_NAMES[name] for name in PARTS if self.digests.get(name) != digests.get(name)]

    def other_terms(self, fingerprint: Mapping[str, str]) -> list[str]:
        """The same of what a trial ran against."""
        return [_TERM_NAMES[name] for name in TERMS if self.fingerprint.get(name) != fingerprint.get(name)]
