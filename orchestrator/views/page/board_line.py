"""As much of a node's row as a dot of a plot and a line of a table need: a quarter of the time that the whole takes."""

from pydantic import BaseModel

from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Role, Spent


class BoardVerdict(BaseModel, frozen=True):
    metrics: dict[str, float]
    cohort: str
    valid: bool = True
    suspect: tuple[str, ...] = ()


class BoardLine(BaseModel, frozen=True):
    """Fields as a Node has them. Where `has_repeats`, its score is not that of its own verdict alone."""

    id: str
    parent: str | None
    role: Role
    phase: Phase = Phase.OPEN
    drafts: int = 0
    island: int = 0
    promoted: int | None = None
    operator: str = ""
    trials: int = 0
    verdict: BoardVerdict | None = None
    measured: tuple[str, ...] = ()
    ending: Ending | None = None
    kept: bool = False
    spent: Spent = Spent()
    opened_at: str = ""
    opened_order: int = 0
    ended_at: str = ""

    @property
    def has_repeats(self) -> bool:
        return self.trials > 1 or bool(self.measured)
