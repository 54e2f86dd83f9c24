"""A person's word before a candidate becomes the champion: the last question, after everything else said yes."""

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Node, Role
from orchestrator.loop import steps
from orchestrator.loop.workbench import Workbench


def person_before_end(node: Node, step: steps.Step, *, asks: bool) -> steps.Step:
    """The last step of all. Pure, like the others: what was answered is not asked again and counts whether one still
    `asks` or not, and a candidate that is no longer better ends without an answer.
    """
    if not isinstance(step, steps.End) or not step.kept or node.role is Role.BASELINE:
        return step
    if node.promotion is None:
        return steps.AskPerson() if asks else step
    why = f": {node.promotion_why}" if node.promotion_why else ""
    if node.promotion:
        return steps.End(step.ending, True, f"{step.why}, and accepted by a person{why}")
    return steps.End(Ending.SCORED, False, f"declined by a person{why}")


async def ask_person(bench: Workbench, name: str) -> None:
    """Ask once, then wait for whatever is recorded next: an answer, or another champion to be compared with.

    No lock and no chamber is held meanwhile, only the attempt's own reservation.
    """
    node = bench.state.nodes[name]
    if not node.promotion_asked:
        over = bench.state.run.champions.get(node.verdict.cohort) if node.verdict else None
        bench.book.record(e.PromotionAsked(node=name, over=over))
    await bench.book.changed()
