"""An attempt: the machine that takes the next step until there is an ending, and books it."""

import asyncio
from datetime import datetime, timedelta

from pydantic import ValidationError

from orchestrator.budget import Account, Amounts, Quarantine, Requeue
from orchestrator.change import Reason, Refusal, Tree, difference
from orchestrator.change.size import lines_changed
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.domain.records import Node, Purpose, Role, Run
from orchestrator.domain.verdict import Mode
from orchestrator.loop import steps
from orchestrator.loop.again import CanNotCompare
from orchestrator.loop.book import stamp
from orchestrator.loop.candidate import point_in
from orchestrator.loop.certification import certify
from orchestrator.loop.certifying import JudgeReplay, OpenTest, Repeat, RepeatChampion, Replay
from orchestrator.loop.cohorts import open_cohort
from orchestrator.loop.guards import check_guard
from orchestrator.loop.heldout import ask_before_end, ask_heldout
from orchestrator.loop.interruption import interrupt
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of, refund_all, slot, unbooked, worst_of_trial
from orchestrator.loop.reviewing import Held, hold, may_review, review
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import BaselineFailed, Free, Workbench
from orchestrator.proposers import Brief, Exhausted, Stalled


class NothingNew(Exception):
    """All that was proposed is known already. It is not run again, and nobody pays."""


class Attempt:
    """One node from its reservation to its ending."""

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self._tuning = bench.task.tune is not None
        self._where = ""

    @property
    def _node(self) -> Node:
        return self._bench.state.nodes[self._name]

    async def run(self) -> str | None:
        """Until there is an ending, or it is queued again. A cancellation queues it again, too.

        Where the proposer has nothing more to offer, it says so, and this is its reason.
        """
        try:
            while not isinstance(step := self._next(), steps.End):
                await self._take(step)
            self._end(step)
        except Free as free:
            self._set_free(free.ending, str(free))
        except Exhausted as error:
            self._cancel(str(error))
            return str(error)
        except NothingNew as error:
            self._cancel(str(error))
        except Held as held:
            hold(self._bench, self._node, str(held))
        except CanNotCompare as error:
            self._end(steps.End(Ending.SCORED, False, str(error)))
        except asyncio.CancelledError:
            interrupt(self._bench, self._name, killed=True)
            raise
        return None

    def _next(self) -> steps.Step:
        bench = self._bench
        tunes = self._tuning and self._node.role is not Role.CONTROL
        step = steps.next_step(
            bench.state, self._name, bench.ranking, bench.certify, tunes=tunes, reviews=may_review(bench)
        )
        return ask_before_end(bench.state, self._node, step, bench.task.heldout)

    async def _take(self, step: steps.Step) -> None:
        bench, node = self._bench, self._node
        match step:
            case steps.Propose():
                await self._propose()
            case steps.Review(draft):
                await review(bench, node, draft, self._draft_tree(node, draft))
            case steps.Hold(why):
                raise Held(why)
            case steps.Tune(draft):
                await self._tune(draft)
            case steps.Promote(draft, why):
                self._promote(draft, why)
            case steps.Submit():
                await run_trial(bench, node.id, Purpose.SUBMIT, node.promoted or 0, bench.tree(node.id))
            case steps.Judge(trial):
                await judge_trial(bench, trial)
            case steps.OpenCohort(cohort, trial):
                await open_cohort(bench, cohort, trial)
            case Replay() | JudgeReplay() | OpenTest() | Repeat() | RepeatChampion():
                await certify(bench, node.id, step)
            case steps.CheckGuard(name):
                guard = next(guard for guard in bench.state.guards_of(node.id) if guard.name == name)
                await check_guard(bench, node.id, guard)
            case steps.AskHeldOut():
                await ask_heldout(bench, node.id)

    async def _propose(self) -> None:
        """Until something is offered that was not tried before."""
        bench, node = self._bench, self._node
        tree = bench.tree(node.parent or "")
        rounds = 1 if node.injection else _ROUNDS
        for again in range(rounds):
            proposals = (
                [self._brought(node.injection)] if node.injection else await self._ask_proposer(node, tree, again)
            )
            if not proposals:
                raise Free(Ending.STALLED, "the proposer offered nothing")
            if drafts := self._new_drafts(node, proposals, tree):
                bench.book.record(*drafts)
                return
        raise NothingNew(f"what is proposed was tried before{self._where}")

    def _new_drafts(self, node: Node, proposals: list[Proposal], tree: Tree) -> list[e.Proposed]:
        """Without those that lead to files that this run has seen."""
        past = self._bench.pasts[Role.CONTROL if node.role is Role.CONTROL else Role.SEARCH]
        drafts: list[e.Proposed] = []
        seen: set[str] = set()
        for proposal in proposals:
            draft = self._draft(node, len(drafts) + 1, proposal, tree)
            digest = draft.tree
            # What a person brings is run even where a proposer had it as a draft.
            if digest and past.knows(digest) and (not node.injection or past.has_measured(digest)):
                self._where = f": {past.first_with(digest)} has the same files"
            elif digest is None or digest not in seen:
                drafts.append(draft)
                seen.add(digest or "")
        return drafts

    def _brought(self, injection: int) -> Proposal:
        record = self._bench.state.injections[injection]
        text = self._bench.artifacts.get(record.change).decode()
        return Proposal(operator="inject", description=record.description, text=text)

    async def _ask_proposer(self, node: Node, tree: Tree, again: int) -> list[Proposal]:
        bench = self._bench
        tune = bench.task.tune
        brief = Brief(
            node=node.id,
            parent=node.parent or "",
            number=node.number,
            seed=_seed(bench.state.run, node.role),
            tree=tree,
            parent_params=self._parent_point(node, tree),
            count=tune.trials if tune and node.role is not Role.CONTROL else 1,
            again=again,
            past=bench.pasts[node.role],
        )
        try:
            async with asyncio.timeout(bench.propose_s):
                return list(await bench.proposers[node.role].propose(brief))[: brief.count]
        except TimeoutError:
            raise Free(Ending.STALLED, f"no proposal within {bench.propose_s:g} s") from None
        except Stalled as error:
            raise Free(Ending.STALLED, str(error)) from error
        except ValidationError as error:
            raise Free(Ending.STALLED, f"what is proposed can not be read ({error.error_count()} faults)") from error

    def _parent_point(self, node: Node, tree: Tree) -> dict[str, Value] | None:
        """None at a root that is the workspace: its point is a person's, and nothing was learnt from it yet."""
        bench, run = self._bench, self._bench.state.run
        if bench.task.parameters is None or (node.parent == run.root and run.start is None):
            return None
        return point_in(tree, bench.task.parameters.file, bench.task.parameters.space)

    def _draft(self, node: Node, number: int, proposal: Proposal, tree: Tree) -> e.Proposed:
        bench = self._bench
        digest, refused = None, None
        try:
            digest = bench.next_tree(tree, proposal).digest
        except Refusal as refusal:
            if refusal.reason is Reason.NO_EFFECT:
                digest = tree.digest
            else:
                refused = str(refusal)
        return e.Proposed(
            node=node.id,
            draft=number,
            operator=proposal.operator,
            description=proposal.description,
            params=proposal.params,
            model=proposal.model,
            change=bench.artifacts.put(proposal.text.encode()) if proposal.text is not None else None,
            tree=digest,
            refused=refused,
        )

    async def _tune(self, draft: int) -> None:
        """A trial against the cheaper target, from the tuning pool. Where that is used up, tuning is over."""
        bench, node = self._bench, self._node
        hold, pool = f"{hold_of(node)}/tune", _tune_slot(node)
        if not await self._reserve_tune(hold, pool + worst_of_trial(bench, Mode.TUNE)):
            self._tuning = False
            return
        trial = steps.tune_trial(bench.state, node, draft)
        if trial is None or not trial.ended or trial.ending:
            name = await run_trial(bench, node.id, Purpose.TUNE, draft, self._draft_tree(node, draft))
            trial = bench.state.trials[name]
        if trial.ending is None:
            await judge_trial(bench, trial.id)
        bench.book.record(e.Settled(hold=hold, node=node.id, spent=(pool + unbooked(self._node)).as_row()))

    async def _reserve_tune(self, hold: str, amounts: Amounts) -> bool:
        """Wait only for the tuning pool itself: what else is short is held by attempts that may wait for us."""
        book = self._bench.book
        while shortage := book.accounts.shortage(amounts):
            if shortage.account is not Account.TUNES or not shortage.could_fit_later:
                return False
            await book.changed()
        book.record(e.Reserved(hold=hold, amounts=amounts.as_row()))
        return True

    def _draft_tree(self, node: Node, number: int) -> Tree:
        """Made anew from the recorded proposal: the same proposal on the same parent is the same tree."""
        bench = self._bench
        if number == 0:
            return bench.root
        draft = bench.state.drafts(node.id)[number - 1]
        text = bench.artifacts.get(draft.change).decode() if draft.change else None
        proposal = Proposal(operator=draft.operator, description=draft.description, params=draft.params, text=text)
        tree = bench.next_tree(bench.tree(node.parent or ""), proposal)
        if tree.digest != draft.tree:
            raise AssertionError(f"draft {number} of {node.id} does not give its recorded tree")
        return tree

    def _promote(self, draft: int, why: str) -> None:
        """The draft becomes the candidate: a commit on the node's own branch, and its diff beside it."""
        bench, node = self._bench, self._node
        if stored := bench.candidates.commit_of(node.id):
            # Its writer was killed before it was on record. A node's candidate never changes, so the choice stands.
            digest = bench.candidates.read(stored).digest
            draft = next((it.number for it in bench.state.drafts(node.id) if it.tree == digest), draft)
        tree = self._draft_tree(node, draft)
        before = bench.tree(node.parent) if node.parent else tree
        parent = bench.state.nodes[node.parent].commit if node.parent else None
        message = f"{node.id}: {node.description or why}"
        commit = bench.candidates.write(node.id, tree, parent, message, datetime.fromisoformat(node.opened_at))
        diff = bench.artifacts.put(difference(before, tree).encode("utf-8", "surrogateescape"))
        promoted = e.Promoted(
            node=node.id, draft=draft, why=why, commit=commit, diff=diff, size=lines_changed(bench.root, tree)
        )
        # What a trial of the baseline says is kept with its draft, like that of any other.
        itself = e.Proposed(node=node.id, draft=0, operator="baseline", description=why, tree=tree.digest)
        bench.book.note(*([itself] if draft == 0 else []), promoted)

    def _end(self, step: steps.End) -> None:
        bench, node = self._bench, self._node
        spent = slot(node.role) + unbooked(node)
        events: list[e.Event] = [
            e.AttemptEnded(node=node.id, ending=step.ending, kept=step.kept, why=step.why),
            e.Settled(hold=hold_of(node), node=node.id, spent=spent.as_row()),
        ]
        run = bench.state.run
        if step.kept and node.verdict:
            over = run.champions.get(node.verdict.cohort)
            cohort = node.verdict.cohort
            events.append(e.ChampionChanged(run=run.number, node=node.id, cohort=cohort, over=over))
        bench.book.record(*events)
        if node.role is Role.BASELINE and step.ending is not Ending.SCORED:
            raise BaselineFailed(f"the baseline ended as {step.ending}: {step.why}", bench.complaints.get(node.id, ""))

    def _set_free(self, ending: Ending, why: str) -> None:
        """Refund and re-queue, or quarantine, in one transaction; every chamber of this attempt is gone by now."""
        bench, node = self._bench, self._node
        decision = bench.refunds.decide(
            ending_is_free=True,
            stalls_of_attempt=node.stalls + (ending is Ending.STALLED),
            refunds_of_lineage=bench.state.refunds_of(node.id) + 1,
            draw=bench.draw(),
        )
        refunds = refund_all(bench, node)
        match decision:
            case Requeue(after_s):
                when = stamp(bench.book.now() + timedelta(seconds=after_s))
                last: e.Event = e.AttemptRequeued(node=node.id, ending=ending, why=why, not_before=when)
            case Quarantine(reason):
                last = e.AttemptQuarantined(node=node.id, ending=ending, why=f"{why}; {reason}")
            case _:
                raise AssertionError("a free ending is never charged")
        bench.book.record(*refunds, last)

    def _cancel(self, why: str) -> None:
        bench, node = self._bench, self._node
        ended = e.AttemptEnded(node=node.id, ending=Ending.CANCELLED, why=why)
        bench.book.record(*refund_all(bench, node), ended)


def _tune_slot(node: Node) -> Amounts:
    return Amounts() if node.role is Role.BASELINE else Amounts.exact({Account.TUNES: 1})


def _seed(run: Run, role: Role) -> int:
    """Another run, or the control, must not draw the same points again."""
    return run.seed + (run.number - 1) * _RUN_SEED + (_CONTROL_SEED if role is Role.CONTROL else 0)


# How often a proposer is asked again when all that it offers is known.
_ROUNDS = 8
_RUN_SEED = 7_919
_CONTROL_SEED = 1_000_003
