"""`[combine]`: a stage of its own whose candidates combine what earlier ones left."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from orchestrator.task.sections import Budget, GuardSpec, SearchSpec, Section, Trial, Tune, Workspace
from orchestrator.task.space import Parameters
from orchestrator.task.words import Editable, Glob, MaybeCommand, Text
from sandbox import Limits

# The input under which a combination finds its pool.
POOL_INPUT = "pool"

_TOLD = """

This is the combination stage: the solution combines what {pool} or fewer earlier solutions of this task left. Their
outputs are in /inputs/pool, a folder each; /inputs/pool/members.json lists the folders, the best one first. They are
there for the same data as the other inputs. Neither their code nor their scores are there.
"""


_CALLS = """
Their code is not there either, and can be called, each in a chamber of its own: from blastdoor_members import members.
"""


@dataclass(frozen=True)
class MemberTerms:
    """How a combination's members are called: how many there may be, the command that serves one, and what holds it."""

    count: int
    serve: tuple[str, ...]
    trial: Trial
    limits: Limits


class CombineSpec(Section):
    """How the pool is chosen, and what a combination is. What is not given is as in the base stage, but the search
    and the patience, which are its own.
    """

    pool: int = Field(default=5, ge=2, le=64)
    diversity: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    members: Literal["outputs", "code"] = "outputs"
    serve: MaybeCommand = ()
    statement: Annotated[Text, Field(min_length=1, max_length=100_000)] | None = None
    workspace: Workspace = "combine"
    editable: tuple[Editable, ...] = Field(min_length=1, max_length=10_000)
    hidden: tuple[Glob, ...] = ()
    exclude: tuple[Glob, ...] = ()
    trial: Trial
    limits: Limits | None = None
    parameters: Parameters | None = None
    tune: Tune | None = None
    guards: tuple[GuardSpec, ...] | None = Field(default=None, max_length=64)
    search: SearchSpec = SearchSpec()
    patience: int | None = Field(default=None, ge=1, le=2**53)

    def stage(self, statement: str, limits: Limits, guards: tuple[GuardSpec, ...], budget: Budget) -> dict[str, Any]:
        """What the stage's task has in the place of the base's. An attempt of the budget is one of the combination."""
        calls = _CALLS if self.members == "code" else ""
        return {
            "statement": self.statement or statement.rstrip() + _TOLD.format(pool=self.pool) + calls,
            "workspace": self.workspace,
            "editable": self.editable,
            "hidden": self.hidden,
            "exclude": self.exclude,
            "trial": self.trial,
            "limits": self.limits or limits,
            "parameters": self.parameters,
            "tune": self.tune,
            "guards": guards if self.guards is None else self.guards,
            "search": self.search,
            "budget": budget.model_copy(update={"attempts": budget.combination or None, "patience": self.patience}),
            "pruning": None,
            "combine": None,
        }

    def terms(self, trial: Trial, limits: Limits) -> MemberTerms | None:
        """Of members that are called; None where combinations get what they left, and nothing more."""
        return MemberTerms(self.pool, self.serve, trial, limits) if self.members == "code" else None
