"""When many stall at once it is not their doing: the campaign pauses, and tries again with one attempt after a while.

A breaker in three states. Closed: attempts run. Open: none is started until a time that doubles with each failure.
Trying: one attempt is let through; what it brings closes the breaker, or opens it again for longer.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.domain import events as e
from orchestrator.loop.book import Book


@dataclass
class Storm:
    """So `many` attempts that stall within `within_s`, with no proposal in between, open it. Times are any clock's."""

    many: int = 2
    within_s: float = 600.0
    pause_s: float = 60.0
    longest_s: float = 1800.0
    trying: bool = False
    _stalls: dict[str, float] = field(default_factory=dict)
    _until: float | None = None
    _failures: int = 0

    def stalled(self, node: str, now: float) -> str | None:
        """Hear of a stall; why to pause, when it was one too many."""
        self._stalls[node] = now
        self._stalls = {name: at for name, at in self._stalls.items() if at >= now - self.within_s}
        if self._until is not None and now < self._until:
            return None  # one that was under way when it opened
        if not self.trying and len(self._stalls) < self.many:
            return None
        pause = min(self.longest_s, self.pause_s * 2.0**self._failures)
        self._until = now + pause
        self._failures += 1
        self.trying = False
        count = len(self._stalls)
        return f"{count} attempt{'s' * (count > 1)} stalled and none got through; one is tried in {pause / 60:g} min"

    def answered(self) -> None:
        """Somebody got through: whatever it was is over."""
        self._stalls.clear()
        self._until = None
        self._failures = 0
        self.trying = False

    def is_due(self, now: float) -> bool:
        """Whether the pause is over; from then on one attempt at a time is tried."""
        if self._until is None or now < self._until:
            return False
        self._until = None
        self.trying = True
        return True


class Weather:
    """The breaker in a campaign: hears its events, and pauses it."""

    def __init__(self, book: Book, width: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._book = book
        self._width = width
        self._clock = clock
        self._storm = Storm(many=max(2, (width + 1) // 2))
        self._why: str | None = None
        book.observers.append(self._hear)

    @property
    def width(self) -> int:
        return 1 if self._storm.trying else self._width

    def look(self) -> None:
        """Pause, or go on with one attempt, where it is time to."""
        why, self._why = self._why, None
        campaign = self._book.state.campaign
        if why and not campaign.paused:
            self._book.record(e.PauseSet(paused=True, why=why))
        elif self._storm.is_due(self._clock()) and campaign.paused and campaign.pause_why:
            self._book.record(e.PauseSet(paused=False, why="one attempt is tried"))

    def _hear(self, event: e.Event, _: str) -> None:
        """Only noted: whoever is told of an event must not record another."""
        match event:
            case e.StallFound():
                self._why = self._storm.stalled(event.node, self._clock()) or self._why
            case e.Proposed() | e.PauseSet(paused=False, why=""):  # an answer, or a person's word
                self._storm.answered()
