"""All that the gate's documents are made of. Nothing in it was said by the judge but numbers that the task declares."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Verdict
from orchestrator.examine.gate import Changed, Decision, Gated
from orchestrator.examine.witness import Witness
from orchestrator.ledger import Head


@dataclass(frozen=True)
class Report:
    """`folder` is the workspace as the reader's repository names it; `metrics` are those that the task declares.

    `audit` is what became of adversaries before this judge, where somebody says.
    """

    task: str
    gated: Gated
    change_sha256: str
    change_bytes: int
    must_improve: bool
    version: str
    started_at: str
    ended_at: str
    changed: tuple[Changed, ...] = ()
    folder: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    tier: Tier | None = None
    witness: Witness | None = None
    head: Head | None = None
    audit: Mapping[str, object] | None = None

    @property
    def accepted(self) -> bool:
        return self.gated.decision is Decision.ACCEPTED

    @property
    def line(self) -> str:
        return f"{self.gated.decision}: {self.gated.why}"

    def values(self, verdict: Verdict | None) -> dict[str, float]:
        """A verdict's declared numbers. Its notes, and names that only the judge knows, stay behind."""
        known = verdict.metrics if verdict else {}
        return {name: known[name] for name in self.metrics if name in known}
