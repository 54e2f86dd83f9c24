"""What runs in chambers, and what is made of it."""

from typing import Literal

from pydantic import Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.events.base import OneEvent
from orchestrator.domain.records import Calibration, Guard, Purpose, Spent
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.verdict import Verdict


class TrialIntended(OneEvent):
    """`subject` is the node whose files run where that is not the node itself; `attempts` is how many the search had
    opened by then.
    """

    kind: Literal["trial intended"] = "trial intended"
    trial: str
    node: str
    purpose: Purpose
    draft: int
    subject: str = ""
    attempts: int = 0


class TrialEnded(OneEvent):
    """`ending` is None for a trial whose outputs go to the judge. `pruning` is None for one that no rule watched."""

    kind: Literal["trial ended"] = "trial ended"
    trial: str
    ending: Ending | None
    reason: str = ""
    exit_code: int | None = None
    outputs: str | None = None
    outputs_bytes: int = 0
    log: str | None = None
    fingerprint: dict[str, str] = Field(default_factory=dict)
    spent: Spent = Spent()
    reports: Reports | None = None
    pruning: Look | None = None


class JudgingIntended(OneEvent):
    kind: Literal["judging intended"] = "judging intended"
    trial: str
    judging: str
    on_baseline: bool = False


class JudgingEnded(OneEvent):
    """A verdict, or the fixed code of what was wrong; the judge's own text is never recorded with a fault.

    `interrupted`: nothing was learnt, only spent.
    """

    kind: Literal["judging ended"] = "judging ended"
    trial: str
    judging: str
    on_baseline: bool = False
    verdict: Verdict | None = None
    fault: str | None = None
    traces: str | None = None
    traces_bytes: int = 0
    spent: Spent = Spent()
    interrupted: bool = False
    calibration: Calibration | None = None


class OutputsLetGo(OneEvent):
    """What these trials left is removed from now on, to keep within the budget; `bytes` is what that frees at most."""

    kind: Literal["outputs let go"] = "outputs let go"
    trials: tuple[str, ...]
    bytes: int


class ArtifactsOverBudget(OneEvent):
    """More is kept than the budget allows, and nothing of it may be let go. Said once a session."""

    kind: Literal["artifacts over budget"] = "artifacts over budget"
    kept: int
    cap: int


class CertificationOpened(OneEvent):
    """A test whether the node is better than the champion. Its level, and how many blocks it has at most, are fixed
    before the first of them is run; 0 blocks are those of a champion that was measured beforehand. With `both` it may
    also prove the node worse.
    """

    kind: Literal["certification opened"] = "certification opened"
    node: str
    champion: str
    cohort: str
    number: int
    reference: int
    against: int
    level: float
    blocks: int = 0
    both: bool = False


class GuardIntended(OneEvent):
    """`draft` is the one whose files are looked at, 0 for the node's candidate."""

    kind: Literal["guard intended"] = "guard intended"
    node: str
    guard: str
    draft: int = 0


class GuardEnded(OneEvent):
    kind: Literal["guard ended"] = "guard ended"
    node: str
    guard: str
    passed: bool
    reason: str = ""
    spent: Spent = Spent()
    interrupted: bool = False
    draft: int = 0


class GuardAdded(OneEvent):
    kind: Literal["guard added"] = "guard added"
    node: str
    guard: Guard


class HeldOutIntended(OneEvent):
    """The held-out split is asked about a node. It counts from here on, whatever becomes of it."""

    kind: Literal["held-out intended"] = "held-out intended"
    node: str
    query: int
    queries: int


class HeldOutAsked(OneEvent):
    """What the ladder says, never the score itself: whether it is better, and the rounded value that it releases.

    `worse` is None unless that was asked in the place of whether it is better; then nothing new is released.
    `cohort` is what the trial was measured on; `interrupted`: nothing was learnt, only asked and spent.
    """

    kind: Literal["held-out asked"] = "held-out asked"
    node: str
    query: int
    cohort: str = ""
    better: bool = False
    worse: bool | None = None
    released: float | None = None
    step: float = 0.0
    fault: str = ""
    spent: Spent = Spent()
    interrupted: bool = False
