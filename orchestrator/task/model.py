"""The task: all that a person says about what is to be optimized. It never changes and knows no folder.

Places are kept as they were written, relative to the task's folder, so that the same task has the same digest on
every machine.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from orchestrator.change import Policy
from orchestrator.domain.certify import CertifyRule
from orchestrator.domain.verdict import Mode
from orchestrator.task.combining import CombineSpec, MemberTerms
from orchestrator.task.errors import TaskError
from orchestrator.task.roles import Roles
from orchestrator.task.sections import (
    AgentSpec,
    Budget,
    CertifySpec,
    GuardSpec,
    HeldOutSpec,
    ImageSpec,
    JudgeSpec,
    MetricSpec,
    ModelSpec,
    PruningSpec,
    RankingSpec,
    SearchSpec,
    Section,
    StallSpec,
    Trial,
    Tune,
    Workspace,
)
from orchestrator.task.space import Parameters
from orchestrator.task.stored import unreadable
from orchestrator.task.words import Editable, Glob, Inputs, Place, TaskName, Text
from sandbox import Limits

_LATER_IN_SEARCH = (
    "arms",
    "meta",
    "credit",
    "price",
    "islands",
    "migrate",
    "archive",
    "novelty",
    "walk",
    "minimise",
    "hints",
)


@dataclass(frozen=True)
class Target:
    """What one trial runs against, once the mode is known. `env` is the candidate's, `judge_env` the judge's."""

    command: tuple[str, ...]
    judge: tuple[str, ...]
    limits: Limits
    env: dict[str, str]
    inputs: dict[str, str]
    judge_env: dict[str, str]


# Each is held against each name of the workspace.
Globs = Annotated[tuple[Glob, ...], Field(max_length=1000)]


class Task(Section):
    """Equal to another when both say the same; what was noticed while reading is no part of it."""

    name: TaskName
    statement: Annotated[Text, Field(min_length=1, max_length=100_000)]
    workspace: Workspace = "workspace"
    editable: tuple[Editable, ...] = Field(min_length=1, max_length=10_000)
    hidden: Globs = ()
    exclude: Globs = ()
    trial: Trial
    inputs: Inputs = Field(default_factory=dict)
    limits: Limits = Limits()
    image: ImageSpec = ImageSpec()
    judge: JudgeSpec
    metrics: tuple[MetricSpec, ...] = Field(default=(MetricSpec(),), min_length=1, max_length=64)
    ranking: RankingSpec = RankingSpec()
    certify: CertifySpec = CertifySpec()
    parameters: Parameters | None = None
    tune: Tune | None = None
    heldout: HeldOutSpec | None = None
    pruning: PruningSpec | None = None
    guards: tuple[GuardSpec, ...] = Field(default=(), max_length=64)
    budget: Budget = Budget()
    stall: StallSpec = StallSpec()
    search: SearchSpec = SearchSpec()
    model: ModelSpec = ModelSpec()
    agent: AgentSpec = AgentSpec()
    roles: Roles = Roles()
    playbook: Place | None = None
    combine: CombineSpec | None = None

    _warnings: tuple[str, ...] = PrivateAttr(default=())
    _members: MemberTerms | None = PrivateAttr(default=None)

    @property
    def members(self) -> MemberTerms | None:
        """Of a combination stage that may call its members."""
        return self._members

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong and may be right, one line each."""
        return self._warnings

    def with_warnings(self, warnings: tuple[str, ...]) -> Self:
        copy = self.model_copy()
        copy._warnings = warnings
        return copy

    @model_validator(mode="after")
    def _repeats_decide_for_times(self) -> Self:
        """Where the task names no rule. A stored task always does."""
        if "rule" not in self.certify.model_fields_set and self.times:
            noisy = self.certify.model_copy(update={"rule": CertifyRule.NOISY})
            noisy.model_fields_set.discard("rule")
            object.__setattr__(self, "certify", noisy)
        return self

    @property
    def times(self) -> list[str]:
        """The metrics that are times."""
        return [it.name for it in self.metrics if it.metric().is_time]

    @property
    def rule_by_default(self) -> str:
        """A line for people where nobody named the rule that decides for a time; else nothing."""
        if "rule" in self.certify.model_fields_set or not self.certify.certify().noisy:
            return ""
        return (
            f'certify.rule is "noisy", since {self.times[0]} is a time: repeats in turn decide, unless it names another'
        )

    def policy(self) -> Policy:
        """What an agent may change. What is left out of the workspace is nobody's to write: when the winner is applied
        it would be written over what a person has there.
        """
        return Policy(editable=self.editable, hidden=(*self.hidden, *self.exclude))

    @property
    def leaves_out(self) -> Callable[[str], bool]:
        """Whether a path of the workspace's folder is no part of the workspace, since it or a folder above it is
        excluded.
        """
        return Policy(editable=(), hidden=self.exclude).hides if self.exclude else lambda _: False

    def target(self, mode: Mode) -> Target:
        """What a trial of this mode runs: the real thing, the cheaper one, or the real thing on held-out data."""
        real = Target(self.trial.command, self.judge.command, self.limits, self.trial.env, self.inputs, self.judge.env)
        if mode is Mode.TUNE and (tune := self.tune):
            return replace(
                real,
                command=tune.command or real.command,
                judge=tune.judge or real.judge,
                limits=tune.limits or real.limits,
                env=real.env | tune.env,
                inputs=real.inputs | tune.inputs,
            )
        if mode is Mode.HELDOUT and (held := self.heldout):
            inputs, env = real.inputs | held.inputs, real.judge_env | held.env
            return replace(real, judge=held.judge or real.judge, inputs=inputs, judge_env=env)
        return real

    def combination(self) -> Self:
        """The task of the combination stage: the same judge, gold, inputs and rules, another candidate. Raises
        TaskError where the task has no such stage.
        """
        if self.combine is None:
            raise TaskError(f"the task {self.name} says of no combination; add [combine] (docs/combining.md)")
        given = self.combine.stage(self.statement, self.limits, self.guards, self.budget)
        stage = self.model_copy(update=given)
        stage._members = self.combine.terms(self.trial, self.limits)
        return stage

    def plain(self) -> dict[str, Any]:
        """Every value, defaults included, as plain JSON. A key that came later is there where it is used, so that the
        digests of earlier tasks stand.
        """
        later: dict[str, Any] = {} if self.exclude else {"exclude": True}
        if self.combine is None:
            later["combine"] = True
        elif self.combine.members == "outputs":
            later["combine"] = {"members", "serve"}
        if self.pruning and not self.pruning.options:
            later["pruning"] = {"options"}
        later["search"] = {name for name in _LATER_IN_SEARCH if getattr(self.search, name) is None}
        if self.model.temperature is None:
            later["model"] = {"temperature"}
        if self.budget.minimisation is None:
            later["budget"] = {"minimisation"}
        return self.model_dump(mode="json", by_alias=True, exclude=later)

    def canonical(self) -> str:
        """One text for all equal tasks."""
        return json.dumps(self.plain(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_canonical(cls, text: str) -> Self:
        """The task that `canonical` wrote. Raises TaskError for anything else."""
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise unreadable(error) from None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.canonical() == other.canonical()

    def __hash__(self) -> int:
        return hash(self.digest)


def diff_of(old: Task, new: Task) -> list[str]:
    """The dotted keys that differ; a list counts as one value."""
    return list(_differences(old.plain(), new.plain(), ""))


def _differences(old: Any, new: Any, key: str) -> list[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True) else [key]
    names = [*old, *(name for name in new if name not in old)]
    return [
        found
        for name in names
        for found in _differences(old.get(name), new.get(name), f"{key}.{name}" if key else name)
    ]
