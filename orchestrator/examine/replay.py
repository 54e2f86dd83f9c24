"""Runs a node's candidate once more, from its commit, and says whether its verdict stands."""

from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain.fingerprint import Fingerprint, difference
from orchestrator.domain.records import Node
from orchestrator.domain.verdict import Verdict
from orchestrator.examine.rehearsal import Rehearsal, rehearse
from orchestrator.loop.workbench import Parts


@dataclass(frozen=True)
class Replay:
    stands: bool
    why: str
    verdict: Verdict | None


async def replay(parts: Parts, node: Node, tree: Tree, fingerprint: Fingerprint, tolerance: float) -> Replay:
    """Every ranked metric must come out within the relative tolerance. Raises Unavailable when the engine fails."""
    again = await rehearse(parts, tree=tree, node=node.id)
    old, new = node.verdict, again.verdict
    if old is None or new is None or old.valid != new.valid:
        stands = old is None and new is None and again.ending == node.ending
        return Replay(stands, f"it ended as {_ending(again)}; recorded: {node.ending or 'unfinished'}", new)
    names = [metric.name for metric in parts.ranking.metrics]
    changed = [name for name in names if not _close(old.metrics.get(name), new.metrics.get(name), tolerance)]
    moved = difference(fingerprint, again.fingerprint)
    where = f"; it ran elsewhere: {', '.join(moved)}" if old.cohort != new.cohort else ""
    if changed:
        return Replay(False, f"differs in {', '.join(changed)}{where}", new)
    return Replay(True, f"the same metrics again{where}", new)


def _ending(again: Rehearsal) -> str:
    if again.ending is not None:
        return f"{again.ending} ({again.reason})"
    fault = again.judgement.fault if again.judgement else None
    return f"invalid (the judge can not score it: {fault})" if fault else "judged"


def _close(old: float | None, new: float | None, tolerance: float) -> bool:
    if old is None or new is None:
        return old is new
    return abs(old - new) <= tolerance * max(abs(old), abs(new))
