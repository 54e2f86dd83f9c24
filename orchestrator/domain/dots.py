"""A chart of a campaign of any length in a moment's reading: of a node that is over, no more than its dot.

Dots stand in blocks by the order in which their nodes were opened, so that a change writes a block of some again, and
one who draws all reads a row for each block. A node whose score is not that of its own verdict alone has none, and that
of one with many scores has none of them: their lines are read.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import BaseModel

from orchestrator.domain.census import sort_text
from orchestrator.domain.lines import AnyNode, Line
from orchestrator.domain.records import Phase

# What is written for each node that ends grows with it; what is read of each, and kept with each row, shrinks.
_SIZE = 16
# Of more the dot has none: what is written again with each of its block would be as long as its own row.
_MOST_SCORES = 8


class Dot(NamedTuple):
    """`sort` says how the node looks, and in which cohort it was judged. No `scores`: they are in its line."""

    opened_order: int
    node: str
    sort: str
    scores: dict[str, float] | None


class Dots(BaseModel, frozen=True):
    dots: tuple[Dot, ...] = ()

    def with_dot(self, node: str, dot: Dot | None) -> "Dots":
        """That of a node in place of its older one, or none."""
        others = [it for it in self.dots if it.node != node]
        return self.model_copy(update={"dots": tuple(sorted([*others, dot] if dot else others))})


class DotsLine(Line, frozen=True):
    dots: tuple[Dot, ...] = ()


def dot_of(node: AnyNode) -> Dot | None:
    if node.phase is not Phase.ENDED or node.ending is None or not node.opened_order:
        return None
    if node.trials > 1 or node.measured or node.asking is not None:
        return None
    verdict = node.verdict if node.ending.scoreable else None
    if verdict is None:
        return Dot(node.opened_order, node.id, sort_text(node), {})
    if not verdict.valid:
        return None
    if len(verdict.metrics) > _MOST_SCORES:
        return Dot(node.opened_order, node.id, sort_text(node), None)
    scores = {name: score for name, score in verdict.metrics.items() if math.isfinite(score)}
    return Dot(node.opened_order, node.id, sort_text(node), scores)


def block_of(dot: Dot) -> str:
    """The name of its row: they sort by it as by their orders."""
    return f"{dot.opened_order // _SIZE:09}"


def take_dots(nodes: Iterable[AnyNode]) -> dict[str, Dots]:
    """Of all nodes."""
    blocks: dict[str, list[Dot]] = {}
    for dot in filter(None, map(dot_of, nodes)):
        blocks.setdefault(block_of(dot), []).append(dot)
    return {name: Dots(dots=tuple(sorted(dots))) for name, dots in blocks.items()}
