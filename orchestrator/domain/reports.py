"""What a trial said of itself while it ran, and what the pruning rule made of it. Never a score."""

from enum import StrEnum

from pydantic import BaseModel, Field

Point = tuple[int, float]

# Half of that at least, once there were more: enough for every rule, and small enough for a row of the ledger.
MOST_POINTS = 64


class BadReport(StrEnum):
    """Why a report line does not count."""

    UNREADABLE = "not a step from 0 on and a finite value"
    BACK = "a step that was over"
    AGAIN = "a step twice"


class Reports(BaseModel, extra="forbid", frozen=True):
    """The curve that a trial reported, thinned; `count` reports counted, `bad` ones did not."""

    points: tuple[Point, ...] = ()
    count: int = 0
    bad: dict[BadReport, int] = Field(default_factory=dict)

    @property
    def refused(self) -> int:
        return sum(self.bad.values())


class Look(BaseModel, extra="forbid", frozen=True):
    """What the rule said of a trial that it watched: where it wanted to stop it and why; no step where it never did.

    A spared trial went on all the same.
    """

    spared: bool = False
    step: int | None = None
    value: float | None = None
    why: str = ""

    @property
    def cut(self) -> bool:
        return self.step is not None


class Curve:
    """Takes reports as they come, a million of them if need be, and keeps few: every one at first, then every second,
    every fourth. Which ones depends on nothing but their order.
    """

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._stride = 1
        self._last: Point | None = None
        self._count = 0
        self._bad: dict[BadReport, int] = {}

    def add(self, step: int, value: float) -> bool:
        """Whether the point is one of those that are kept."""
        if self._last and step <= self._last[0]:
            self.refuse(BadReport.AGAIN if step == self._last[0] else BadReport.BACK)
            return False
        self._last = (step, value)
        at, self._count = self._count, self._count + 1
        if at % self._stride:
            return False
        self._points.append(self._last)
        if len(self._points) > MOST_POINTS:
            del self._points[1::2]
            self._stride *= 2
        return True

    def refuse(self, why: BadReport, times: int = 1) -> None:
        if times:
            self._bad[why] = self._bad.get(why, 0) + times

    @property
    def count(self) -> int:
        """How many reports counted, kept or not."""
        return self._count

    @property
    def points(self) -> list[Point]:
        """Those that are kept, and always the last one."""
        if self._last and self._points[-1] != self._last:
            return [*self._points, self._last]
        return self._points

    def record(self) -> Reports | None:
        """None where nothing was reported at all."""
        if not self._count and not self._bad:
            return None
        return Reports(points=tuple(self.points), count=self._count, bad=dict(sorted(self._bad.items())))
