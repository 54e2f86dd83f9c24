"""A task as a run stored it. To look at a campaign takes little of it, and all of it takes long to load."""

from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from orchestrator.domain.metric import Metric, Ranking, Rule
from orchestrator.domain.tier import Tier
from orchestrator.task.errors import TaskError

if TYPE_CHECKING:
    from orchestrator.task.model import Task


class _Part(BaseModel, frozen=True):
    """The keys of a table that results are read by; the others are for those who run it."""


class _RankingPart(_Part):
    rule: Rule


class _JudgePart(_Part):
    mode: Tier


class _SearchPart(_Part):
    selection: str | None = None


class _RolesPart(_Part):
    evolver: object = None
    verifier: object = None


class Criteria(_Part):
    """What the results of a run are read by."""

    metrics: tuple[Metric, ...]
    ranking: _RankingPart
    judge: _JudgePart
    search: _SearchPart
    roles: _RolesPart
    pruning: object = None

    @property
    def order(self) -> Ranking:
        return Ranking(self.metrics, self.ranking.rule)


class StoredTask:
    """The text that `Task.canonical` wrote; both readings raise TaskError for anything else."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def criteria(self) -> Criteria:
        try:
            return Criteria.model_validate_json(self._text)
        except ValidationError as error:
            raise unreadable(error) from None

    @cached_property
    def whole(self) -> "Task":
        from orchestrator.task.model import Task

        return Task.from_canonical(self._text)


def unreadable(error: ValidationError) -> TaskError:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return TaskError(f"the stored task cannot be read ({where}: {first['msg']}); start a new run")
