"""A person's word before a candidate becomes the champion: the last question, after everything else said yes."""

from orchestrator.domain import events as e
from orchestrator.loop.workbench import Workbench


async def ask_person(bench: Workbench, name: str) -> None:
    """Ask once, then wait for whatever is recorded next: an answer, or another champion to be compared with.

    No lock and no chamber is held meanwhile, only the attempt's own reservation.
    """
    node = bench.state.nodes[name]
    if not node.promotion_asked:
        over = bench.state.run.champions.get(node.verdict.cohort) if node.verdict else None
        bench.book.record(e.PromotionAsked(node=name, over=over))
    await bench.book.changed()
