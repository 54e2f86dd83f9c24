"""The tables of the task file, each a value that never changes."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Discriminator, Field, StrictBool, Tag, field_validator, model_validator

from orchestrator.choices import PRUNERS
from orchestrator.domain.certify import Certify, CertifyRule
from orchestrator.domain.fingerprint import DEFAULT_BINDS, FIELDS
from orchestrator.domain.metric import Goal, Metric, Rule
from orchestrator.domain.tier import USUAL, Tier
from orchestrator.task.words import (
    Command,
    Env,
    Glob,
    ImageName,
    Inputs,
    Inside,
    MaybeCommand,
    Name,
    Package,
    Place,
    Requirement,
    Revision,
    Text,
)
from orchestrator.units import Money, Rate
from sandbox import Limits
from sandbox.units import Duration, Size

Resource = Literal["gpu", "memory", "port", "database", "api", "cpu"]
Number = Annotated[float, Field(allow_inf_nan=False)]
Warmth = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Span = Annotated[Duration, Field(gt=0, le=86_400 * 366)]
Plain = (
    StrictBool | Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)] | Text
)


class Section(BaseModel, extra="forbid", frozen=True):
    """A table of the task file."""


class Repository(Section):
    """A workspace that is a repository at a revision, or a folder of it."""

    repository: Place
    revision: Revision = "HEAD"
    folder: Inside = "."


class Trial(Section):
    """What runs in the candidate's chamber. Without `outputs`, everything that it leaves reaches the judge."""

    command: Command
    build: MaybeCommand = ()
    outputs: tuple[Glob, ...] = ()
    env: Env = Field(default_factory=dict)
    workdir: Inside = "."
    loopback: bool = False
    steps: int | None = Field(default=None, ge=1, le=2**53)


class ImageSpec(Section):
    """What is installed in a chamber's image; baked once. Without `base`, the settings name it."""

    base: ImageName | None = None
    pip: tuple[Requirement, ...] = ()
    apt: tuple[Package, ...] = ()
    run: tuple[Text, ...] = ()


class JudgeSpec(Section):
    """Trusted code and gold. Without `gold`, it is the folder `gold`, if that exists. `looks` are files of a candidate
    that a judge which calls it finds as data.
    """

    command: Command
    folder: Place = "judge"
    gold: Place | None = None
    mode: Tier = USUAL
    looks: tuple[Place, ...] = ()
    env: Env = Field(default_factory=dict)
    limits: Limits = Limits()
    image: ImageSpec = ImageSpec()


class MetricSpec(Section):
    """A number of the judge's result. `ceiling` is what nobody honest gets past; `timing` marks measured seconds, and
    `before` what decides before the others.
    """

    name: Name = "score"
    goal: Goal = Goal.HIGHER
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    binds: tuple[str, ...] = DEFAULT_BINDS
    target: Number | None = None
    ceiling: Number | None = None
    timing: bool = False
    before: bool = False

    @field_validator("binds")
    @classmethod
    def _known_fields(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [field for field in value if field not in FIELDS]:
            raise ValueError(f'"{unknown[0]}" is no field of a fingerprint; known are {", ".join(FIELDS)}')
        return value

    @model_validator(mode="after")
    def _target_can_be_reached(self) -> Self:
        if self.target is not None and self.metric().too_good(self.target):
            raise ValueError(f"the target {self.target:g} is beyond the ceiling {self.ceiling:g}; change one of them")
        return self

    def metric(self) -> Metric:
        return Metric(**{name: getattr(self, name) for name in MetricSpec.model_fields})


class RankingSpec(Section):
    rule: Rule = Rule.LEXICOGRAPHIC


class CertifySpec(Section):
    """When a better score counts as an improvement."""

    rule: CertifyRule = CertifyRule.STRICT
    error: float = Field(default=0.05, gt=0, lt=1, allow_inf_nan=False)
    repeats: int = Field(default=24, ge=1, le=10_000)
    champion: int = Field(default=5, ge=1, le=10_000)
    replay: bool = True

    def certify(self) -> Certify:
        return Certify(**{name: getattr(self, name) for name in CertifySpec.model_fields})


class Tune(Section):
    """The cheaper target. What is not given is as in a real trial; `env` and `inputs` replace name by name."""

    trials: int = Field(default=1, ge=1, le=10_000)
    command: Command | None = None
    limits: Limits | None = None
    env: Env = Field(default_factory=dict)
    inputs: Inputs = Field(default_factory=dict)
    judge: Command | None = None

    @model_validator(mode="after")
    def _is_cheaper(self) -> Self:
        if not (self.command or self.limits or self.env or self.inputs or self.judge):
            raise ValueError("is not cheaper than a trial; give one of command, limits, env, inputs, judge")
        return self


class HeldOutSpec(Section):
    """A split that is judged only when a candidate is about to be kept. `env` is the judge's: the candidate's would
    tell it where it is.
    """

    step: float = Field(gt=0, allow_inf_nan=False)
    inputs: Inputs = Field(default_factory=dict)
    judge: Command | None = None
    env: Env = Field(default_factory=dict)
    queries: int = Field(default=100, ge=1, le=1_000_000)
    gate: bool = True

    @model_validator(mode="after")
    def _is_another_split(self) -> Self:
        if not (self.inputs or self.judge or self.env):
            raise ValueError("is the development split again; give one of inputs, judge, env")
        return self


class PruningSpec(Section):
    """When a trial is ended early, by the values that it reports. None is the rule's own default.

    `options` are keys that a rule of another package has for itself.
    """

    rule: Name
    goal: Goal | None = None
    warmup: int | None = Field(default=None, ge=0, le=2**53)
    every: int | None = Field(default=None, ge=1, le=2**53)
    startup: int = Field(default=5, ge=1, le=1_000_000)
    spare: float = Field(default=0.1, ge=0, le=1, allow_inf_nan=False)
    reduction: int | None = Field(default=None, ge=2, le=1000)
    least: int | None = Field(default=None, ge=1, le=2**53)
    threshold: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    options: Annotated[dict[Name, Plain | tuple[Plain, ...]], Field(max_length=64)] = {}

    @model_validator(mode="after")
    def _of_its_rule(self) -> Self:
        """A rule of another package may make something of any key."""
        keys = ("warmup", "every", "reduction", "least", "threshold", "options")
        fits = PRUNERS.built_in[self.rule].traits if self.rule in PRUNERS.built_in else keys
        for name in keys:
            if getattr(self, name) not in (None, {}) and name not in fits:
                raise ValueError(f'"{name}" means nothing to the rule {self.rule}, which knows {", ".join(fits)}')
        return self


class GuardSpec(Section):
    """A command that must pass for a candidate to be kept; `place` is written `in`."""

    name: Name
    command: Command
    place: Literal["chamber", "judge"] = Field(default="chamber", alias="in")
    limits: Limits = Limits()


class Budget(Section):
    """Caps of the campaign; None is no cap. `seconds` are those of chambers, `wall` those of the clock.

    `stall_losses` is what attempts that ended free may have cost, `artifacts` what is stored of their outputs.
    """

    attempts: int | None = Field(default=None, ge=1, le=2**53)
    tunes: Count | None = None
    combination: Count = 0
    minimisation: Count | None = None
    usd: Annotated[Money, Field(ge=0, le=1e9)] | None = None
    tokens: Count | None = None
    seconds: Span | None = None
    wall: Span | None = None
    stall_losses: Annotated[Money, Field(ge=0, le=1e9)] | None = None
    artifacts: Annotated[Size, Field(ge=0, le=2**53)] | None = None
    patience: int | None = Field(default=None, ge=1, le=2**53)
    rate: Annotated[Rate, Field(gt=0, le=1e6)] | None = None


class StallSpec(Section):
    """When an attempt that hangs is given up, how often a lineage may end free, and how many attempts in a row may."""

    after: int = Field(default=3, ge=1, le=1000)
    refunds: int = Field(default=5, ge=1, le=1_000_000)
    in_a_row: int = Field(default=20, ge=1, le=1_000_000)
    in_a_row_usd: Annotated[Money, Field(gt=0, le=1e9)] | None = None
    propose: Span = 600.0
    provision: Span = 120.0
    heartbeat: Span | None = None
    first_token: Span = 120.0
    floor: float = Field(default=1.0, ge=0, le=100_000, allow_inf_nan=False)
    window: Annotated[Span, Field(ge=1)] = 60.0
    grace: Span = 30.0
    thinking: Span = 300.0
    tool: Span = 600.0
    waiting: Span = 240.0
    loop: int = Field(default=4, ge=2, le=1000)
    learn: float | None = Field(default=None, gt=0, lt=0.5, allow_inf_nan=False)


class ModelSpec(Section):
    """How a model is asked, and what one attempt may use of it. None of `models` leaves them to the settings."""

    models: tuple[Name, ...] | None = Field(default=None, min_length=1, max_length=16)
    usd: Annotated[Money, Field(gt=0, le=1e6)] = 0.5
    tokens: int = Field(default=1_000_000, ge=1, le=2**53)
    per_minute: int | None = Field(default=None, ge=1, le=1_000_000)
    max_output: int = Field(default=8_000, ge=256, le=1_000_000)
    proposals: int = Field(default=3, ge=1, le=64)
    context: int = Field(default=30_000, ge=1_000, le=10_000_000)
    form: Literal["blocks", "diff", "whole"] = "blocks"
    others: bool = True
    notes: bool = False
    temperature: tuple[Warmth, Warmth] | None = None

    @field_validator("temperature")
    @classmethod
    def _rises(cls, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        if bounds and not bounds[0] < bounds[1]:
            raise ValueError("the first bound must be below the second one; write it like [0.3, 1.0]")
        return bounds


class AgentSpec(Section):
    """A coding agent in a chamber of its own: one that is known by name, or any command in an image."""

    name: Name = "claude-code"
    image: ImageName | None = None
    command: Command | None = None
    env: Env = Field(default_factory=dict)
    limits: Limits = Limits(wall=1800, memory=2 * 1024**3, pids=512, work_bytes=1024**3, work_inodes=131_072)


class FeatureSpec(Section):
    """A number that the judge reports, and the bins that it falls into; what is outside of them is in the last one."""

    low: Number
    high: Number
    bins: int = Field(default=10, ge=2, le=1000)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low must be below high, and {self.low:g} is not below {self.high:g}")
        return self


class ArchiveSpec(Section):
    """The grid of `selection = "archive"`. Without features it is over the tasks, beside the baseline."""

    features: Annotated[dict[Name, FeatureSpec], Field(max_length=8)] = {}


class SearchSpec(Section):
    """Who proposes, how wide and how deep. None leaves the choice to the program. Names are checked where the task is
    read for a search: what is stored stays readable without the package that brought one.
    """

    proposer: Name | None = None
    width: int | None = Field(default=None, ge=1, le=100_000)
    depth: int | None = Field(default=None, ge=1, le=1000)
    saturates: tuple[Resource, ...] | None = None
    control: Name | None = None
    selection: Name | None = None
    arms: tuple[Name, ...] | None = Field(default=None, min_length=1, max_length=16)
    meta: Literal["off", "lift", "gradient"] | None = None
    credit: Literal["lift", "lineage"] | None = None
    price: Literal["none", "usd", "seconds"] | None = None
    hints: Literal["auto", "hot", "reached", "off"] | None = None
    islands: int | None = Field(default=None, ge=1, le=1000)
    migrate: int | None = Field(default=None, ge=1, le=2**53)
    archive: ArchiveSpec | None = None
    novelty: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | Literal["off", "learn"] | None = None
    walk: int | None = Field(default=None, ge=1, le=2**53)
    review: bool | None = None
    ask: bool | None = None
    minimise: bool | None = None


def _kind_of_workspace(value: object) -> str:
    return "<repository>" if isinstance(value, dict | Repository) else "<folder>"


Workspace = Annotated[
    Annotated[Place, Tag("<folder>")] | Annotated[Repository, Tag("<repository>")], Discriminator(_kind_of_workspace)
]
