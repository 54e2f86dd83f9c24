"""One chamber's life, and what the judge made of it."""

from pydantic import BaseModel, Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.records.base import Purpose, Spent
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.verdict import Verdict


class Calibration(BaseModel, extra="forbid", frozen=True):
    """Of a judging that called the candidate: what an empty call took and how far nine of ten differed from that.

    `seed` is what the judge was given to draw from, so that its inputs can be drawn again. `call_s` is what a call
    took, the way there and back included; `measured` is how often the channel was.
    """

    seed: str
    median_s: float
    jitter_s: float
    calls: int = 0
    call_s: float | None = None
    measured: int = 1


class Trial(BaseModel, extra="forbid", frozen=True):
    """One chamber's life for one candidate, and what the judge made of it. `subject` is the node whose files ran where
    that is not its own: the champion's, for a reference. `attempts` is how many the search had opened by then.
    `let_go`: its outputs and traces are no longer stored, to keep within their budget. Bytes of 0 were not counted.
    """

    id: str
    node: str
    purpose: Purpose
    draft: int
    started_at: str
    subject: str = ""
    attempts: int = 0
    ended: bool = False
    ending: Ending | None = None
    reason: str = ""
    exit_code: int | None = None
    outputs: str | None = None
    outputs_bytes: int = 0
    log: str | None = None
    fingerprint: dict[str, str] = Field(default_factory=dict)
    spent: Spent = Spent()
    judging: str | None = None
    judging_since: str = ""
    fault: str | None = None
    judged: bool = False
    verdict: Verdict | None = None
    traces: str | None = None
    traces_bytes: int = 0
    let_go: bool = False
    reports: Reports | None = None
    pruning: Look | None = None
    calibration: Calibration | None = None
