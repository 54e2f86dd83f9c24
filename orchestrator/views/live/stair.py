"""The best score over the attempts so far in one line: a stair of eight heights."""

from collections.abc import Sequence

from orchestrator.views.render.axis import drawable
from orchestrator.views.render.model import Step

_UNICODE = "▁▂▃▄▅▆▇█"
_ASCII = "_.:-=+*#"


def stair(steps: Sequence[Step], count: int, width: int, unicode: bool = True) -> str:
    """At most `width` characters for `count` attempts; empty where nothing is kept. Only the present cohort is drawn,
    because scores of another do not compare.
    """
    begin = max((at for at, step in enumerate(steps) if step.fresh), default=0)
    steps = steps[begin:]
    if not steps or width < 1:
        return ""
    first, last = steps[0].order, max(count, steps[-1].order)
    columns = min(width, last - first + 1)
    levels = _UNICODE if unicode else _ASCII
    scores = [drawable(step.score) for step in steps]
    low, high = min(scores), max(scores)
    drawn, at = [], 0
    for column in range(columns):
        order = first + (column + 1) * (last - first + 1) // columns - 1
        while at + 1 < len(steps) and steps[at + 1].order <= order:
            at += 1
        share = (scores[at] - low) / (high - low) if high > low else 0.0
        drawn.append(levels[round(share * (len(levels) - 1))])
    return "".join(drawn)
