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
_STEERED = e.Steered.model_fields["kind"].default


@dataclass(frozen=True)
class History:
    events: Sequence[Moment] = ()
    promoted_why: str = ""
    guard_reasons: Mapping[str, str] = field(default_factory=dict)
    steering: Sequence[str] = ()

    @classmethod
    def of(cls, moments: Iterable[Moment], node: str) -> "History":
        """The events about a node, in order, and what a person had said by the time that it was proposed."""
        told: list[Moment] = []
        said: list[str] = []
        heard = 0
        for at, event in moments:
            if isinstance(event, e.Steered):
                said.append(event.text)
            elif node_of(event) == node:
                told.append((at, event))
                heard = len(said) if isinstance(event, e.Proposed) else heard
        promoted = [event.why for _, event in told if isinstance(event, e.Promoted)]
        reasons = {event.guard: event.reason for _, event in told if isinstance(event, e.GuardEnded)}
        return cls(told, promoted[-1] if promoted else "", reasons, said[:heard])

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
    return History.of(read_moments(ledger, node), node)


def read_moments(ledger: Ledger, node: str | None = None) -> Iterator[Moment]:
    """Every event that this version knows, with its time; with a node, at least those about it and what a person
    said. To read an event takes ten times as long as to look for a name in its text.
    """
    names = (f'"{node}"', f'"{node}-')
    for record in ledger.read():
        if node is None or record.kind == _STEERED or any(name in record.body for name in names):
            with contextlib.suppress(ValidationError):
                yield record.at, e.read_event(record.body)
