"""What the ledger tells of one node beyond its record: reasons, and when each trial ended."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from orchestrator.domain import events as e
from orchestrator.ledger import Ledger
from orchestrator.views.campaign.happenings import line_of, node_of

Moment = tuple[str, e.Event]


@dataclass(frozen=True)
class History:
    events: Sequence[Moment] = ()
    promoted_why: str = ""
    guard_reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, moments: Iterable[Moment], node: str) -> "History":
        """The events about a node, in order."""
        told = [(at, event) for at, event in moments if node_of(event) == node]
        promoted = [event.why for _, event in told if isinstance(event, e.Promoted)]
        reasons = {event.guard: event.reason for _, event in told if isinstance(event, e.GuardEnded)}
        return cls(told, promoted[-1] if promoted else "", reasons)

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(at, line_of(event)) for at, event in self.events]

    def took(self, trial: str) -> float | None:
        """Seconds from a trial's intent to its end on the orchestrator's clock; None while it runs."""
        started = [at for at, event in self.events if isinstance(event, e.TrialIntended) and event.trial == trial]
        ended = [at for at, event in self.events if isinstance(event, e.TrialEnded) and event.trial == trial]
        if not started or not ended:
            return None
        return (datetime.fromisoformat(ended[-1]) - datetime.fromisoformat(started[-1])).total_seconds()


def history_of(ledger: Ledger, node: str) -> History:
    return History.of(read_moments(ledger), node)


def read_moments(ledger: Ledger) -> Iterator[Moment]:
    """Every event that this version knows, with its time."""
    for record in ledger.read():
        with contextlib.suppress(ValidationError):
            yield record.at, e.read_event(record.body)
