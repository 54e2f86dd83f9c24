"""An attempt: the machine that takes the next step until there is an ending, and books it."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.budget import Amounts
from orchestrator.budget.refunds import Quarantine, Requeue
from orchestrator.change import Effort, Refusal, Tree
from orchestrator.change.canonical import Size, compare
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Node, Purpose, Role
from orchestrator.llm.line import Unusable
from orchestrator.loop import steps
from orchestrator.loop.again import CanNotCompare
from orchestrator.loop.breaker import MODEL, Standing
from orchestrator.loop.certification import certify
from orchestrator.loop.certifying import JudgeReplay, MeasureChampion, OpenTest, Replay, RunBlock
from orchestrator.loop.cohorts import measure_in, open_cohort
from orchestrator.loop.guards import check_guard
from orchestrator.loop.heldout import ask_heldout
from orchestrator.loop.interruption import interrupt
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.keeping import AskHeldOut, AskPerson, CheckGuard, End, MeasureParent, OpenCohort, stage_of
from orchestrator.loop.minimising import Minimising
from orchestrator.loop.money import hold_of, refund_all, slot, unbooked
from orchestrator.loop.promotion import ask_person
from orchestrator.loop.proposing import NothingNew, Proposing
from orchestrator.loop.trial import run_trial
from orchestrator.loop.tuning import Tuning, draft_tree
from orchestrator.loop.verifying import Held, hold, review, to_review
from orchestrator.loop.workbench import BaselineFailed, Free, Workbench
from orchestrator.offload import offload_and_hand_on
from orchestrator.proposers import Exhausted, PluginFailed, Unanswered
from orchestrator.units import stamp
from orchestrator.watch.pulse import Cause

# Stalls that say nothing of the provider.
_OWN_DOING = (Cause.LOOP, Cause.REFUSED)


class Attempt:
    """One node from its reservation to its ending."""

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self._tuning = Tuning(bench, node)
        self._proposing = Proposing(bench, node, self._tuning)
        self._minimising = Minimising(bench, node)

    @property
    def _node(self) -> Node:
        return self._bench.state.nodes[self._name]

    async def run(self) -> str | None:
        """Until there is an ending, or it is queued again. A cancellation queues it again, too.

        Where the proposer has nothing more to offer, it says so, and this is its reason.
        """
        over: str | None = None
        try:
            while over is None:
                missed = self._bench.door.awake.missed
                try:
                    if isinstance(step := self._next(), End):
                        self._end(step)
                        over = ""
                    else:
                        await self._work_of(step)
                except Exception as error:  # noqa: BLE001  what is none of an attempt's endings is raised again
                    over = await self._ended_by(error, missed)
        except asyncio.CancelledError:
            interrupt(self._bench, self._name, killed=True)
            raise
        return over or None

    async def _ended_by(self, error: Exception, missed: float) -> str | None:
        """Nothing where it goes on with what was saved of a stall; else why the proposer has nothing more, or empty."""
        match error:
            case Free():
                return await self._freed(error, missed)
            case Refusal():
                # Read once more, or compared, it came to more than a change may cost.
                self._end(End(Ending.INVALID, False, f"the change is refused: {error}"))
            case Unanswered():
                if late := self._bench.door.awake.missed - missed:
                    self._interrupted(_stood_still(late))
                else:
                    self._end(End(Ending.INVALID, False, str(error), drawn=error.drawn))
            case Unusable():
                self._cancel(str(error))
                raise error
            case PluginFailed():
                interrupt(self._bench, self._name, why=str(error))
                raise error
            case Exhausted():
                self._cancel(str(error))
                return str(error)
            case NothingNew():
                self._cancel(str(error))
            case Held():
                hold(self._bench, self._node, str(error))
            case CanNotCompare():
                stage = stage_of(self._bench.state, self._node, self._bench.certify)
                self._end(End(Ending.SCORED, False, str(error), stage, undecided=True))
            case _:
                raise error
        return ""

    def _next(self) -> steps.Step:
        bench = self._bench
        tunes = self._tuning.open and self._node.role is not Role.CONTROL
        reviews = to_review(bench)
        return steps.next_step(bench.state, self._name, bench.rules, tunes=tunes, reviews=reviews)

    def _work_of(self, step: steps.Step) -> Awaitable[object]:
        """To be awaited at once. Raises Held."""
        bench, node = self._bench, self._node
        match step:
            case steps.Propose():
                return self._proposing.propose()
            case steps.Review(drafts):
                return review(bench, node, drafts)
            case steps.Hold(why):
                raise Held(why)
            case steps.Tune(draft):
                return self._tuning.run(draft)
            case steps.Promote(draft, why):
                return self._promote(draft, why)
            case steps.Minimise():
                return self._minimise()
            case steps.Submit():
                return run_trial(bench, node.id, Purpose.SUBMIT, node.promoted or 0)
            case steps.Judge(trial):
                return judge_trial(bench, trial)
            case OpenCohort(cohort, trial):
                return open_cohort(bench, cohort, trial)
            case MeasureParent(cohort):
                return measure_in(bench, node.parent or "", cohort)
            case Replay() | JudgeReplay() | OpenTest() | RunBlock() | MeasureChampion():
                return certify(bench, node.id, step)
            case CheckGuard(name):
                guard = next(guard for guard in bench.state.guards_of(node.id) if guard.name == name)
                return check_guard(bench, node.id, guard)
            case AskHeldOut():
                return ask_heldout(bench, node.id)
            case AskPerson():
                return ask_person(bench, node.id)
            case End():
                raise AssertionError("an ending is no work")

    async def _minimise(self) -> None:
        if found := await self._minimising.run():
            await self._promote(found.draft, found.why, found.tree)

    async def _promote(self, draft: int, why: str, tree: Tree | None = None) -> None:
        """The draft becomes the candidate: a commit on the node's own branch, and its diff beside it.

        Its files are made of what was proposed, unless they are given.
        """
        bench, node = self._bench, self._node
        # A branch is for good: what it is made of must not be taken back by a crash and come to be something else.
        await bench.book.durable()
        with bench.shelf.storing():
            made, commit = await offload_and_hand_on(_write_candidate, bench, node, draft, why, tree)
            # So that nothing is awaited between the record of it and the trial's intent.
            bench.trees.keep(commit, made.tree)
            promoted = e.Promoted(
                node=node.id,
                draft=made.draft,
                why=why,
                commit=commit,
                diff=made.diff,
                size=made.size.lines,
                size_bytes=made.size.bytes,
            )
            # What a trial of the baseline says is kept with its draft, like that of any other.
            itself = e.Proposed(node=node.id, draft=0, operator="baseline", description=why, tree=made.tree.digest)
            bench.book.record(*([itself] if made.draft == 0 else []), promoted)

    def _end(self, step: End) -> None:
        bench, node = self._bench, self._node
        used = node.role is not Role.MINIMISED or node.submitted
        spent = (slot(bench, node.role) if used else Amounts()) + unbooked(node)
        events: list[e.Event] = [
            e.AttemptEnded(node=node.id, cost=node.spent, **vars(step)),
            e.Settled(hold=hold_of(node), node=node.id, spent=spent.as_row()),
        ]
        run = bench.state.run
        if step.kept and node.verdict and node.role is not Role.MINIMISED:
            over = run.champions.get(node.verdict.cohort)
            cohort = node.verdict.cohort
            events.append(e.ChampionChanged(run=run.number, node=node.id, cohort=cohort, over=over))
        bench.book.record(*events)
        if node.role is Role.BASELINE and step.ending is not Ending.SCORED:
            raise BaselineFailed(f"the baseline ended as {step.ending}: {step.why}", bench.complaints.get(node.id, ""))

    async def _freed(self, free: Free, missed: float) -> str | None:
        """What follows a free ending; None where the attempt goes on after all."""
        if free.denied:
            # Trying again would burn retries and money: it waits for a resume, and the campaign ends.
            interrupt(self._bench, self._name, why=str(free), lost=True)
            raise Unusable(str(free)) from free
        if free.ending is Ending.INTERRUPTED:
            self._interrupted(str(free))
        elif late := self._bench.door.awake.missed - missed:
            self._interrupted(_stood_still(late))
        else:
            fate = await self._fate(free)
            if self._hands_in(free, fate):
                return None
            if fate.quarantine and self._is_set_up_wrongly(free):
                self._set_free(free, _Fate())
                raise Unusable(str(free)) from free
            self._set_free(free, fate)
        return ""

    def _is_set_up_wrongly(self, free: Free) -> bool:
        """The gateway refuses this agent again and again, and no attempt was used up meanwhile: the next one would fare
        no better, so a person has to change something first.
        """
        bench = self._bench
        return _is_refused(free) and bench.state.campaign.free + 1 >= bench.refunds.stalls

    def _interrupted(self, why: str) -> None:
        """Nobody was there to hear it, so what it seemed to do says nothing: it is run again, and not charged."""
        interrupt(self._bench, self._name, why=why, slept_s=round(self._bench.door.awake.missed, 3))

    async def _fate(self, free: Free) -> "_Fate":
        """Nobody is set aside for what a provider did: its failures do not count against the attempt, unless others get
        through between them. Where what does count is enough for quarantine, the provider has to answer at that moment,
        or have answered just before.
        """
        bench, node, stood = self._bench, self._node, self._bench.breaker.standing
        self._tell_breaker(free)
        unopened = free.provider and not free.delivered
        innocent = stood is Standing.OPEN or bool(unopened and not bench.breaker.is_alone(node.id, free.provider))
        decision = bench.refunds.decide(
            ending_is_free=True,
            stalls_of_attempt=node.stalls + (free.ending is Ending.STALLED and not innocent),
            refunds_of_lineage=bench.state.refunds_of(node.id) + (not innocent),
            draw=bench.draw(),
        )
        asked = free.provider or (MODEL if free.ending is Ending.STALLED and not _is_refused(free) else "")
        if isinstance(decision, Quarantine) and not innocent and stood is Standing.CLOSED:
            innocent = not await bench.breaker.vouches(asked)
        if isinstance(decision, Quarantine) and not innocent:
            return _Fate(quarantine=decision.reason)
        after_s = decision.after_s if isinstance(decision, Requeue) and stood is not Standing.OPEN else 0.0
        return _Fate(after_s=after_s, provider=asked if innocent else "", outage=stood is Standing.OPEN)

    def _tell_breaker(self, free: Free) -> None:
        breaker = self._bench.breaker
        if free.provider:
            breaker.failed(free.provider, str(free), node=self._name)
        elif any(it.cause not in _OWN_DOING for it in _stalls(free)):
            breaker.stalled(self._name, str(free))

    def _hands_in(self, free: Free, fate: "_Fate") -> bool:
        """An agent that is given up on may have tuned something good by then: that is handed in for it."""
        bench, node = self._bench, self._node
        best = steps.best_tried(bench.state, node, bench.ranking) if fate.quarantine and not node.promoted else None
        if best is None:
            return False
        told = best.model_dump(include=set(e.Proposed.model_fields) - {"kind", "node", "draft", "tried"})
        bench.book.record(*free.found, e.Proposed(node=node.id, draft=node.drafts + 1, **told))
        return True

    def _set_free(self, free: Free, fate: "_Fate") -> None:
        """Refund and re-queue, or quarantine, in one transaction; every chamber of this attempt is gone by now."""
        bench, node = self._bench, self._node
        ending, why = free.ending, str(free)
        refunds = refund_all(bench, node, lost=True)
        lost = sum(it.spent.get("usd", 0) for it in refunds)
        if fate.quarantine:
            last: e.Event = e.AttemptQuarantined(
                node=node.id, ending=ending, why=f"{why}; {fate.quarantine}", lost=lost
            )
        else:
            last = e.AttemptRequeued(
                node=node.id,
                ending=ending,
                why=why,
                not_before=stamp(bench.book.now() + timedelta(seconds=fate.after_s)) if fate.after_s else "",
                provider=fate.provider,
                outage=fate.outage,
                lost=lost,
            )
        bench.book.record(*refunds, *free.found, last)

    def _cancel(self, why: str) -> None:
        bench, node = self._bench, self._node
        ended = e.AttemptEnded(node=node.id, ending=Ending.CANCELLED, why=why)
        bench.book.record(*refund_all(bench, node, lost=False), ended)


def _stalls(free: Free) -> list[e.StallFound]:
    return [it for it in free.found if isinstance(it, e.StallFound)]


def _is_refused(free: Free) -> bool:
    return any(it.cause == Cause.REFUSED for it in _stalls(free))


def _stood_still(seconds: float) -> str:
    return f"the orchestrator stood still for {seconds:.0f} s meanwhile"


@dataclass(frozen=True)
class _Fate:
    """What becomes of an attempt that ended free: why it is set aside, or when it is run again and whose doing it was.

    `outage`: it ended while nothing could be started anyway.
    """

    quarantine: str = ""
    after_s: float = 0.0
    provider: str = ""
    outage: bool = False


@dataclass(frozen=True)
class _Made:
    """What is written for a draft, beside its commit; `diff` is on disk for good."""

    draft: int
    diff: str
    size: Size
    tree: Tree


def _write_candidate(
    bench: Workbench, node: Node, draft: int, why: str, tree: Tree | None
) -> tuple[_Made, Future[str]]:
    """In a thread; the future is of its commit. Raises Refusal."""
    if stored := bench.candidates.commit_of(node.id):
        # Its writer was killed before it was on record. A node's candidate never changes, so the choice stands.
        written = bench.candidates.read(stored)
        draft = next((it.number for it in bench.state.drafts(node.id) if it.tree == written.digest), draft)
        tree = tree and written
    tree = tree or draft_tree(bench, node, draft)
    before = bench.tree_here(node.parent) if node.parent else tree
    parent = bench.state.nodes[node.parent].commit if node.parent else None
    drafted = bench.state.draft(f"{node.id}#{draft}")
    message = f"{node.id}: {drafted.description if drafted else why}"
    change = compare(before, tree, Effort())
    diff = change.text().encode("utf-8", "surrogateescape")
    size = (change if before == bench.root else compare(bench.root, tree, Effort())).size()
    candidate = bench.candidates.prepare(node.id, tree, parent, message, datetime.fromisoformat(node.opened_at))
    return _Made(draft, bench.artifacts.keep(diff), size, tree), bench.candidates.submit(candidate)
