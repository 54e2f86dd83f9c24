"""As much of a node's row as a dot of a plot and a line of a table need: a seventh of the time that the whole takes."""

from orchestrator.domain.ending import Ending
from orchestrator.domain.lines import Line, SpentLine
from orchestrator.domain.records import Phase, Role


class BoardVerdict(Line, frozen=True):
    metrics: dict[str, float]
    cohort: str
    valid: bool = True
    suspect: tuple[str, ...] = ()


class BoardLine(Line, frozen=True):
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
    spent: SpentLine = SpentLine()
    opened_at: str = ""
    opened_order: int = 0
    ended_at: str = ""

    @property
    def has_repeats(self) -> bool:
        return self.trials > 1 or bool(self.measured)
