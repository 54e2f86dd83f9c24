"""A series as an SVG picture: every node a dot, the stair of the best, and a row below for what has no score.

It has neither script nor style sheet of its own: colours are classes of the page around it. Dots that few can be told
apart are drawn one by one, with their node and score as a tooltip; more of them are drawn as one path for each look,
each spot once, so that a picture of any campaign stays small.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from orchestrator.domain import figures
from orchestrator.text import printable
from orchestrator.views.render.axis import Axis, axis_of
from orchestrator.views.render.model import Point, Series, Step
from orchestrator.views.render.tags import class_of, content, element

WIDTH, HEIGHT = 960, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 24, 24, 52
_LABELLED = 11
_ONE_BY_ONE = 2000
_RADIUS = {"●": 4.5}
_HOLLOW = "○◇"
_USUAL_RADIUS = 2.8


def svg(series: Series) -> str:
    """Empty where nothing is scored yet."""
    scores = [point.score for point in series.points if point.score is not None]
    if not scores:
        return ""
    frame = _Frame(series, axis_of(scores, [step.score for step in series.steps], HEIGHT - _TOP - _BOTTOM))
    about = printable(f"{series.name} of {len(series.points):,} nodes over their order; {series.goal} is better")
    parts = [element("title", content(about)), *frame.axes(), *frame.dots(), frame.stair(), *frame.unscored()]
    return element(
        "svg",
        "".join(parts),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
        **{"class": "chart", "aria-label": about},
    )


class _Frame:
    """From orders and scores to places in the picture."""

    def __init__(self, series: Series, axis: Axis) -> None:
        self._series = series
        self._axis = axis
        self._last = max(2, series.points[-1].order)

    def x(self, order: int) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (order - 1) / (self._last - 1), 1)

    def y(self, score: float) -> float:
        return round(_TOP + float(self._axis.row(score)), 1)

    def axes(self) -> Iterator[str]:
        labels = Axis(self._axis.low, self._axis.high, _LABELLED).labels()
        for row, label in labels.items():
            at = _TOP + (HEIGHT - _TOP - _BOTTOM - 1) * row / (_LABELLED - 1)
            yield element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=f"{at:.1f}", y2=f"{at:.1f}", **{"class": "grid"})
            yield element("text", content(label), x=_LEFT - 8, y=f"{at + 4:.1f}", **{"class": "tick left"})
        for order in _ticks(self._last):
            yield element("text", content(f"{order:,}"), x=self.x(order), y=HEIGHT - 8, **{"class": "tick"})
        yield element("text", content(self._series.name), x=4, y=12, **{"class": "tick start"})

    def dots(self) -> Iterator[str]:
        scored = [point for point in self._series.points if point.score is not None]
        if len(scored) <= _ONE_BY_ONE:
            for point in sorted(scored, key=lambda point: point.look.rank):
                yield self._dot(point)
            return
        yield from self._paths(scored, lambda point: self.y(point.score or 0.0))

    def _dot(self, point: Point) -> str:
        x, y = self.x(point.order), self.y(point.score or 0.0)
        told = element("title", content(f"{point.node} {point.look.word}: {figures.score(point.score)}"))
        shape = {"class": f"dot {class_of(point.look.style)}{' hollow' if point.look.sign in _HOLLOW else ''}"}
        if point.look.sign == "◇":
            return element("path", told, d=f"M{x} {y - 4:.1f}l3 4 -3 4 -3 -4z", **shape)
        return element("circle", told, cx=x, cy=y, r=_RADIUS.get(point.look.sign, _USUAL_RADIUS), **shape)

    def unscored(self) -> Iterator[str]:
        """On a row of their own: a missing score is no zero."""
        without = [point for point in self._series.points if point.score is None]
        if without:
            yield element("text", content("no score"), x=_LEFT - 8, y=HEIGHT - 27, **{"class": "tick left"})
            yield from self._paths(without, lambda _: HEIGHT - 31)

    def _paths(self, points: Sequence[Point], height: Callable[[Point], float]) -> Iterator[str]:
        by_look = sorted(points, key=lambda point: (point.look.rank, point.look.word))
        for look, found in groupby(by_look, key=lambda point: point.look):
            spots = dict.fromkeys((round(self.x(it.order)), round(height(it))) for it in found)
            path = "".join(f"M{x} {y}h0" for x, y in spots)
            yield element("path", d=path, **{"class": f"dots {class_of(look.style)}"})

    def stair(self) -> str:
        return element("path", d="".join(self._stair(self._series.steps)), **{"class": "stair"})

    def _stair(self, steps: Sequence[Step]) -> Iterator[str]:
        for at, step in enumerate(steps):
            end = steps[at + 1].order if at + 1 < len(steps) else self._last
            begin = f"M{self.x(step.order)} {self.y(step.score)}" if step.fresh or not at else f"V{self.y(step.score)}"
            yield f"{begin}H{self.x(end)}"


def _ticks(last: int) -> Sequence[int]:
    """About eight round numbers, and the first one."""
    step = next(it for it in (size * 10**power for power in range(9) for size in (1, 2, 5)) if last / it <= 8)
    return [1, *range(step, last + 1, step)] if step > 1 else range(1, last + 1)
