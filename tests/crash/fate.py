"""Where a process dies: every event and every effect has a point before it and one after it.

A process without a fate counts its points and goes on.
"""

import functools
import inspect
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from orchestrator.door import Door
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts, Ledger
from orchestrator.loop.book import Book
from sandbox.session import Session

_EFFECTS: tuple[tuple[type[Any], str], ...] = (
    (Ledger, "seize"),
    (Ledger, "append"),
    (Book, "record"),  # folded, and not on disk
    (Book, "durable"),  # an effect is asked for, and not begun; then all is on disk, and it is still not begun
    (Door, "_open"),
    (Session, "_expect"),  # the bundle is delivered and runs; then it has run, and its outputs are still inside
    (Door, "_run"),
    (Candidates, "_write_objects"),
    (Candidates, "_write_branches"),
    (Candidates, "_tidy"),
    (Artifacts, "put"),
    (Artifacts, "keep"),
    (Artifacts, "keep_files"),
    (Artifacts, "let_go"),
    (Artifacts, "_is_gone"),
    (Artifacts, "sync"),
)

EFFECTS = {f"{owner.__name__}.{name.lstrip('_')}": (owner, name) for owner, name in _EFFECTS}
_OF_EVENTS = ("Ledger.append", "Book.record")
_FOLDED = ("promoted", "trial intended", "judging ended", "attempt ended")


class Fate:
    """Kills its process at the point of a number, counted from 1, or of those with this name only; None spares it."""

    def __init__(self, at: int | None, named: str = "") -> None:
        self.points: list[str] = []
        self._at = at
        self._named = named
        self._met = 0

    def meet(self, point: str) -> None:
        self.points.append(point)
        self._met += not self._named or point == self._named
        if self._met == self._at:
            os.kill(os.getpid(), signal.SIGKILL)

    def end(self) -> None:
        """The last point of all. Commits that meet are one, so that a life may have fewer points than were counted in
        another: one that is not spared is killed here at the latest.
        """
        if self._at is not None:
            os.kill(os.getpid(), signal.SIGKILL)

    def rule(self) -> None:
        """For the rest of this process, and for all in it."""
        for told, (owner, name) in EFFECTS.items():
            setattr(owner, name, self._fated(getattr(owner, name), told))

    def _fated(self, effect: Callable[..., Any], name: str) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(effect):

            @functools.wraps(effect)
            async def fated_async(*args: Any, **options: Any) -> Any:
                if name != "Door.run":  # which begins with Door.open
                    self.meet(f"before {name}")
                done = await effect(*args, **options)
                self.meet(f"after {name}")
                return done

            return fated_async

        @functools.wraps(effect)
        def fated(*args: Any, **options: Any) -> Any:
            if name == "Artifacts.sync" and not args[0].pending:
                return None  # there is nothing to do, so there is no point in it
            what = f"{name} ({_told(name, args)})" if name in _OF_EVENTS else name
            self.meet(f"before {what}")
            done = effect(*args, **options)
            self.meet(f"after {what}")
            return done

        return fated


def _told(name: str, args: Sequence[Any]) -> str:
    """To die before it is written is to have died before it: of what is folded, a few kinds stand for all."""
    if name == "Ledger.append":
        return ", ".join(entry.kind for entry in args[1])
    return next((event.kind for event in args[1:] if event.kind in _FOLDED), "another")


def after_effects(points: Sequence[str]) -> list[int]:
    """The numbers of the points after an effect. To die before one is to die after the one before it; only what runs
    in a chamber goes on in between."""
    return [number for number, it in enumerate(points, start=1) if it.startswith(("after", "before Session"))]


def last_of_each_kind(points: Sequence[str], numbers: Iterable[int]) -> list[int]:
    """Of these numbers the last of each kind of point: with most on record."""
    return sorted({points[number - 1]: number for number in numbers}.values())


def die_within(seconds: float) -> None:
    """At some moment, wherever the process then is: in the middle of a write as well as in none."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
