"""What happens in a campaign as it happens: events from the ledger, lines from the chambers at work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.ledger import Ledger, Record
from orchestrator.text import short
from orchestrator.views.campaign.happenings import LONGEST, line_of, node_of
from orchestrator.views.campaign.live import LiveLogs

POLL_S = 0.25


@dataclass(frozen=True)
class Told:
    """One line for a person; `record` is the same for a program, `style` its colour."""

    text: str
    record: dict[str, Any]
    style: str = ""


def told_of(record: Record, node: str | None = None) -> Told | None:
    """None for an event about another node. An event that a later version wrote is shown by its kind."""
    line, about = _read(record)
    if node is not None and about != node:
        return None
    plain = {"seq": record.seq, "at": record.at, "kind": record.kind, "node": about, "line": line}
    return Told(f"{figures.moment(record.at)} {record.seq:>6}  {line}", plain, _style(record.kind))


def _read(record: Record) -> tuple[str, str | None]:
    try:
        event = e.read_event(record.body)
    except ValidationError:
        return short(f"{record.kind} (not known to this version)", LONGEST), None
    return line_of(event), node_of(event)


def _style(kind: str) -> str:
    if kind in ("champion changed", "run started"):
        return "bold green"
    if kind in ("attempt requeued", "attempt quarantined", "kill intended", "cohort opened"):
        return "yellow"
    return "bold" if kind == "attempt ended" else "bright_black"


def told_live(trial: str, line: str) -> Told:
    return Told(f"{short(trial, 60)} | {line}", {"trial": trial, "line": line})


@dataclass
class Tail:
    """`node` leaves only what is about one node."""

    ledger: Ledger
    live: LiveLogs
    node: str | None = None
    after: int = 0

    def begin(self, lines: int) -> list[Told]:
        """The last lines of what is there."""
        head = self.ledger.head().seq
        self.after = head
        return [*self._last(head, lines), *self._of_chambers(self.live.skip(lines))]

    def _last(self, head: int, lines: int) -> list[Told]:
        """Events of other nodes may lie between those that are wanted, so the window grows until it holds enough."""
        span = max(1, lines)
        while True:
            start = max(0, head - span)
            records = self.ledger.read(after=start, limit=head - start)
            found = [told for record in records if (told := told_of(record, self.node))]
            if start == 0 or len(found) >= lines:
                return found[max(0, len(found) - lines) :]
            span *= 4

    def poll(self) -> Iterator[Told]:
        """What came since."""
        for record in self.ledger.read(after=self.after):
            self.after = record.seq
            if told := told_of(record, self.node):
                yield told
        yield from self._of_chambers(self.live.poll())

    def _of_chambers(self, lines: list[tuple[str, str]]) -> list[Told]:
        return [told_live(trial, line) for trial, line in lines if self.node in (None, trial.rpartition("-")[0])]


def follow(tail: Tail, lines: int, show: Callable[[Told], None], sleep: Callable[[float], None]) -> None:
    """For ever; Ctrl-C, as KeyboardInterrupt, is the way out."""
    for told in tail.begin(lines):
        show(told)
    while True:
        for told in tail.poll():
            show(told)
        sleep(POLL_S)
