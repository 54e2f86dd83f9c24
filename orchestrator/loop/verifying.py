"""A verifier's look at a change before a trial is paid for. Its word can make an attempt wait, and nothing else: no
verdict, rank or choice of a draft depends on it.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import Literal

from orchestrator.change.canonical import difference
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.llm.line import NoAnswer
from orchestrator.llm.verifier import Finding, Question, ask_verifier
from orchestrator.loop.models import FoundStalled, Watched
from orchestrator.loop.money import refund_all
from orchestrator.loop.shares import course_of, spent_by_role
from orchestrator.loop.steps import Reviews
from orchestrator.loop.tuning import draft_tree
from orchestrator.loop.workbench import Workbench
from orchestrator.offload import offload
from orchestrator.text import short

Found = Finding | Literal["unreviewed"]

_ROLE = ModelRole.VERIFIER
_NONCE_BYTES = 8
_LONGEST_WHY = 300


class Held(Exception):
    """The verifier holds all that was proposed; nobody pays, and a person decides."""


def to_review(bench: Workbench) -> Reviews:
    """Of several changes, all where they compete in tuning; else the first, and the others when they are taken up."""
    if bench.models is None or bench.task.roles.verifier is None:
        return Reviews.NONE
    return Reviews.FIRST if bench.task.tune is None else Reviews.ALL


async def review(bench: Workbench, node: Node, drafts: Sequence[int]) -> None:
    """Ask about each, on one line for all, and record what was found. A verifier that cannot be asked holds nobody up,
    but that nobody looked is on record, too.
    """
    models = bench.models
    if models is None:
        raise AssertionError("a review without a line")
    left = list(drafts)
    try:
        async with asyncio.timeout(bench.propose_s), models.watched(node.id, _ROLE, bench.propose_s) as watched:
            while left:
                finding, reasons = await _look_at(bench, node, left[0], watched)
                bench.book.record(e.Reviewed(node=node.id, draft=left.pop(0), finding=finding, reasons=reasons))
    except TimeoutError:
        bench.book.record(*_unreviewed(node, left, f"the verifier gave no answer within {bench.propose_s:g} s"))
    except FoundStalled as stalled:
        bench.book.record(e.KillConfirmed(node=node.id), *_unreviewed(node, left, f"the verifier stalled: {stalled}"))


async def _look_at(bench: Workbench, node: Node, draft: int, watched: Watched) -> tuple[Found, str]:
    spec = bench.task.roles.verifier
    course = course_of(bench.state, bench.book.accounts, bench.task)
    if not course.is_due(_ROLE, spent_by_role(bench.state)):
        return "unreviewed", "the verifier's share of the dollars is used up for now"
    diff = await offload(_change_of, bench, node, draft)
    question = Question(bench.task.statement, bench.task.editable, diff, secrets.token_hex(_NONCE_BYTES))
    try:
        found = await watched.until_stalled(ask_verifier(watched.line, question, spec.thinking if spec else 0))
    except NoAnswer as error:
        return "unreviewed", short(f"the verifier gave no answer: {error}", _LONGEST_WHY)
    return found.finding, found.reasons


def _change_of(bench: Workbench, node: Node, draft: int) -> str:
    """In a thread."""
    return difference(bench.tree_here(node.parent or ""), draft_tree(bench, node, draft))


def _unreviewed(node: Node, drafts: Sequence[int], why: str) -> list[e.Reviewed]:
    reasons = short(why, _LONGEST_WHY)
    return [e.Reviewed(node=node.id, draft=it, finding="unreviewed", reasons=reasons) for it in drafts]


def hold(bench: Workbench, node: Node, why: str) -> None:
    """The slot goes back, and the attempt waits for a person; nothing of it has run."""
    held = e.AttemptQuarantined(node=node.id, ending=Ending.HELD, why=why)
    bench.book.record(*refund_all(bench, node, lost=False), held)


class Holds:
    """Counts what is held in a row. Each costs dollars and no slot, so a verifier that holds everything would run on
    until the dollars are gone; after a few, the campaign waits for a person instead.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._in_a_row = 0

    def count(self, node: Node) -> bool:
        """Whether the verifier holds this attempt, which is over."""
        held = node.phase is Phase.QUARANTINED and node.ending is Ending.HELD
        if held:
            self._in_a_row += 1
        elif node.role is Role.SEARCH:
            self._in_a_row = 0
        spec = self._bench.task.roles.verifier
        if spec and self._in_a_row >= spec.holds and not self._bench.state.campaign.paused:
            self._pause()
        return held

    def _pause(self) -> None:
        why = (
            f"the verifier held {self._in_a_row} changes in a row; blastdoor show NODE tells why, "
            "blastdoor release NODE lets one go on"
        )
        self._in_a_row = 0
        self._bench.book.record(e.PauseSet(paused=True, why=why))
