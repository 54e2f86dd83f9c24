"""Runs a node's candidate once more, from its commit, and says whether its verdict stands."""

from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain.fingerprint import difference
from orchestrator.domain.records import Node
from orchestrator.loop.measuring import Measured, measure
from orchestrator.loop.workbench import Parts


@dataclass(frozen=True)
class Replay:
    stands: bool
    why: str
    measured: Measured


async def replay(parts: Parts, node: Node, tree: Tree, fingerprint: dict[str, str], tolerance: float) -> Replay:
    """Every ranked metric must come out within the relative tolerance. Raises like measure."""
    measured = await measure(parts, tree, node.id)
    old, new = node.verdict, measured.verdict
    if old is None or new is None or old.valid != new.valid:
        ending = node.ending or "unfinished"
        stands = old is None and new is None and measured.ending == node.ending
        return Replay(stands, f"it ended as {measured.ending} ({measured.reason}); recorded: {ending}", measured)
    changed = [
        name
        for name in (metric.name for metric in parts.ranking.metrics)
        if not _close(old.metrics.get(name), new.metrics.get(name), tolerance)
    ]
    moved = difference(fingerprint, measured.fingerprint)
    where = f"; it ran elsewhere: {', '.join(moved)}" if old.cohort != new.cohort else ""
    if changed:
        return Replay(False, f"differs in {', '.join(changed)}{where}", measured)
    return Replay(True, f"the same metrics again{where}", measured)


def _close(old: float | None, new: float | None, tolerance: float) -> bool:
    if old is None or new is None:
        return old is new
    return abs(old - new) <= tolerance * max(abs(old), abs(new))
