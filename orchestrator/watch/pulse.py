"""What the detector says."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.watch.signals import Hold


class Life(StrEnum):
    """Low is no stall yet. Stalled is final: a killer must be able to rely on it."""

    STARTING = "starting"
    WORKING = "working"
    HELD = "held"
    LOW = "low"
    STALLED = "stalled"


class Cause(StrEnum):
    """Why it is a stall; a closed list, for the ledger."""

    NO_FIRST_TOKEN = "no first token"  # noqa: S105 - the tokens of a model
    SILENT = "silent"
    BELOW_FLOOR = "below the floor"
    THINKING = "thinking too long"
    TOOL = "tool too long"
    WAITING = "waiting too long"
    TRIAL = "trial too long"
    JUDGING = "judging too long"
    LOOP = "loop"
    REFUSED = "refused"


CAUSES = {
    Hold.FIRST_TOKEN: Cause.NO_FIRST_TOKEN,
    Hold.THINKING: Cause.THINKING,
    Hold.TOOL: Cause.TOOL,
    Hold.QUEUED: Cause.WAITING,
    Hold.TRIAL: Cause.TRIAL,
    Hold.JUDGING: Cause.JUDGING,
}


@dataclass(frozen=True)
class Pulse:
    """`rate` is in tokens a second over the window, None before a first token and under a hold. `since` is when the
    present state began; of a stall, when it went wrong: the last progress, the rate's fall, the first repeat. `at` is
    when it was found, which may be before anybody asked. `tokens` counts all that were heard by then.
    """

    state: Life
    at: float
    since: float
    tokens: int
    floor: float
    rate: float | None = None
    hold: Hold | None = None
    cause: Cause | None = None
    detail: str = ""

    @property
    def stalled(self) -> bool:
        return self.state is Life.STALLED
