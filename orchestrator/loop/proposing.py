"""From a brief to drafts on record: what a proposer is asked, what of its answer is new, and how long it may take."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from pydantic import ValidationError

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.node import path_to
from orchestrator.domain.proposal import BROUGHT, Drawn, Proposal, Value
from orchestrator.domain.records import Draft, Node, Role, Run
from orchestrator.door import BrokeOff, NotStarted
from orchestrator.loop.backstop import PAID_ROUNDS
from orchestrator.loop.breaker import MODEL
from orchestrator.loop.candidate import point_in
from orchestrator.loop.history import History
from orchestrator.loop.models import FoundStalled
from orchestrator.loop.offers import Batch, Offer, is_small, read_offer, refusal_of
from orchestrator.loop.selection import SLOT
from orchestrator.loop.spares import next_spare
from orchestrator.loop.steering import Said
from orchestrator.loop.tuning import Tuning
from orchestrator.loop.workbench import Free, Workbench
from orchestrator.meta.chooser import Chooser
from orchestrator.offload import offload, offload_disk
from orchestrator.proposers import Barred, Brief, Computed, Stalled, Tuned, Unanswered
from orchestrator.watch.pulse import Cause

# How often a proposer is asked again when all that it offers is known.
_ROUNDS = 8
_RUN_SEED = 7_919
_CONTROL_SEED = 1_000_003


class NothingNew(Exception):
    """All that was proposed is known already. It is not run again, and nobody pays."""


class Proposing:
    """One attempt's way to its drafts."""

    def __init__(self, bench: Workbench, node: str, tuning: Tuning) -> None:
        self._bench = bench
        self._name = node
        self._tuning = tuning
        self._where = ""
        self._repeated: list[Proposal] = []
        self._steered = 0

    @property
    def _node(self) -> Node:
        return self._bench.state.nodes[self._name]

    async def propose(self) -> None:
        """What was offered with a sibling, or else until something is offered that was not tried before.

        Raises NothingNew, Free, and what proposers raise.
        """
        bench, node = self._bench, self._node
        if bench.at_once == 1 or node.role is not Role.SEARCH:
            await self._ask_until_new()
            return
        async with bench.parents.setdefault(node.parent or "", asyncio.Lock()):
            if spare := next_spare(bench.state, node.parent or ""):
                bench.book.record(self._taken_up(spare))
            elif bench.models and not bench.models.grants.may_propose(node.id) and not bench.has_free_arm:
                # Nothing is set aside to ask with: the attempt that is opened next sets it aside, and asks.
                raise NothingNew("the change that it was to take up was taken back or taken up by another")
            else:
                await self._ask_until_new()

    async def _ask_until_new(self) -> None:
        bench, node = self._bench, self._node
        tree = await bench.tree(node.parent or "")
        for again in range(self._rounds(node)):
            proposals = [await self._brought(node.injection)] if node.injection else await self._ask(node, tree, again)
            if not proposals:
                raise Free(Ending.STALLED, "the proposer offered nothing")
            with bench.shelf.storing():
                read = [await read_offer(bench, tree, proposal) for proposal in proposals]
                drafts, alike = self._new_drafts(proposals, read)
                counted = self._counted(len(proposals), drafts, alike)
                if drafts or counted:
                    bench.book.record(*drafts, *counted)
            if drafts:
                return
            self._repeated += proposals
        raise NothingNew(f"what is proposed was tried before{self._where}")

    def _rounds(self, node: Node) -> int:
        if node.injection:
            return 1
        return _ROUNDS if self._bench.models is None else PAID_ROUNDS

    def _counted(self, offered: int, drafts: Sequence[e.Proposed], alike: int) -> list[e.OffersCounted]:
        """Where asking costs, it is known what it brought; what is too much alike is counted anywhere."""
        node = self._node
        free = self._bench.models is None and self._bench.at_once == 1
        if node.role is not Role.SEARCH or (free and not alike):
            return []
        if free:
            return [e.OffersCounted(node=node.id, offered=0, distinct=0, refused=0, alike=alike)]
        refused = sum(draft.refused is not None for draft in drafts)
        new = len(drafts) - refused
        return [e.OffersCounted(node=node.id, offered=offered, distinct=new, refused=refused, alike=alike)]

    def _taken_up(self, spare: Draft) -> e.Proposed:
        told = spare.model_dump(include=set(e.Proposed.model_fields) - {"node", "draft", "origin"})
        origin = f"{spare.node}#{spare.number}"
        return e.Proposed(node=self._name, draft=self._node.drafts + 1, origin=origin, **told)

    def _new_drafts(self, proposals: Sequence[Proposal], read: Sequence[Offer]) -> tuple[list[e.Proposed], int]:
        """Without those that lead to files that this run has seen: by now, since others went on meanwhile. And how many
        of the others are too much alike.
        """
        node = self._node
        batch = Batch(self._bench, self._past, node)
        drafts: list[e.Proposed] = []
        seen: set[str] = set()
        for proposal, found in zip(proposals, read, strict=True):
            draft = self._draft(node.drafts + len(drafts) + 1, proposal, found)
            digest = found.digest or ""
            if digest in seen or self._is_known(digest):
                continue
            if found.likeness:
                record = batch.look_at(found.likeness)
                if not batch.takes(found.likeness, record, draft.draft):
                    self._where = f": it is {record.alike:.0%} like {record.twin}"
                    continue
                draft = draft.model_copy(update={"likeness": record})
            drafts.append(draft)
            seen |= {digest} if digest else set()
        return drafts, batch.too_alike

    @property
    def _past(self) -> History:
        return self._bench.pasts[Role.CONTROL if self._node.role is Role.CONTROL else Role.SEARCH]

    def _is_known(self, digest: str) -> bool:
        if not self._past.knows(digest) or self._may_be_run(digest):
            return False
        self._where = f": {self._past.first_with(digest)} has the same files"
        return True

    def _may_be_run(self, digest: str) -> bool:
        """What a person brings is run even where a proposer had it as a draft; so is what an agent tuned itself."""
        node = self._node
        if node.injection:
            return not self._past.has_measured(digest)
        return any(
            draft.tried and digest in (draft.tree, draft.known_as) for draft in self._bench.state.drafts(node.id)
        )

    async def _brought(self, injection: int) -> Proposal:
        record = self._bench.state.injections[injection]
        text = (await offload_disk(self._bench.artifacts.get, record.change)).decode()
        return Proposal(operator=BROUGHT, description=record.description, text=text)

    async def _ask(self, node: Node, tree: Tree, again: int) -> list[Proposal]:
        """A session that ends gives back all that it has open; any other that leaves a tune behind has used it up."""
        try:
            proposals = await self._asked(node, tree, again)
        except Exception:
            self._tuning.close_cut()
            raise
        self._tuning.close_cut()
        return proposals

    async def _asked(self, node: Node, tree: Tree, again: int) -> list[Proposal]:
        bench = self._bench
        proposer = bench.proposers[node.role]
        held = partial(self._parent_point, node, tree)
        point = held() if is_small(tree) else await offload(held)
        brief = self._brief(node, tree, again, point)
        if node.role is Role.SEARCH and bench.state.run.profile:
            brief = replace(brief, profile=await offload_disk(bench.profile), hot=bench.is_hot)
        if not isinstance(proposer, Computed):  # any other may ask whom it likes
            await bench.book.durable()
        try:
            async with asyncio.timeout(bench.propose_s):
                if bench.models is None or node.role is not Role.SEARCH or self._asks_nobody(node):
                    return _with_drawn(await proposer.propose(brief), brief, node)
                async with bench.models.watched(node.id, ModelRole.USER, bench.propose_s) as watched:
                    brief = replace(
                        brief, line=watched.line, heard=watched.heard, tune=self._tune_of(tree), tunes=self._tuning.left
                    )
                    return _with_drawn(await watched.until_stalled(proposer.propose(brief)), brief, node)
        except TimeoutError:
            why = f"no proposal within {bench.propose_s:g} s"
            raise Free(Ending.STALLED, why, found=self._gave_up("deadline", why, bench.propose_s)) from None
        except FoundStalled as stalled:
            bench.book.record(e.KillConfirmed(node=node.id))
            raise Free(Ending.STALLED, str(stalled), found=self._found(stalled)) from stalled
        except (NotStarted, BrokeOff) as error:
            raise Free.of(error) from error
        except Unanswered as error:
            error.drawn = _whole(error.drawn or brief.chooser.drawn, node)
            raise
        except Stalled as error:
            if isinstance(error, Barred):
                raise Free(Ending.STALLED, str(error), found=self._gave_up(Cause.REFUSED, str(error))) from error
            found = self._gave_up("no answer", str(error))
            # It may be this one question that no model answers: so it counts, unless others get no answer either.
            provider = MODEL if found else ""
            raise Free(Ending.STALLED, str(error), found=found, provider=provider, delivered=True) from error
        except ValidationError as error:
            raise Free(Ending.STALLED, f"what is proposed cannot be read ({error.error_count()} faults)") from error

    def _asks_nobody(self, node: Node) -> bool:
        """Dollars are short, and one of several proposers needs none."""
        models = self._bench.models
        return self._bench.has_free_arm and models is not None and not models.grants.may_propose(node.id)

    def _found(self, stalled: FoundStalled) -> list[e.Event]:
        """What is recorded with the refund."""
        return [self._stall(stalled.pulse.cause or "", stalled.pulse.detail, stalled.after_s, stalled.saved_s)]

    def _gave_up(self, cause: str, why: str, after_s: float = 0.0) -> list[e.Event]:
        watched = self._bench.models is not None and self._node.role is Role.SEARCH
        return [self._stall(cause, why, after_s, 0.0)] if watched else []

    def _stall(self, cause: str, detail: str, after_s: float, saved_s: float) -> e.Event:
        node, models = self._node, self._bench.models
        if models is None:
            raise AssertionError("nobody watched")
        return e.StallFound(
            node=node.id,
            agent=models.agent,
            model=models.allowances[ModelRole.USER].models[0],
            configuration=models.configuration,
            cause=cause,
            detail=detail,
            after_s=round(after_s, 3),
            saved_s=round(saved_s, 3),
            lost=node.spent - node.booked,
        )

    def _brief(self, node: Node, tree: Tree, again: int, point: dict[str, Value] | None) -> Brief:
        bench, past = self._bench, self._bench.pasts[node.role]
        self._steered = len(bench.state.campaign.steering)
        seed = seed_of(bench.state.run, node.role)
        learns = node.role is Role.SEARCH
        return Brief(
            node=node.id,
            parent=node.parent or "",
            number=node.number,
            seed=seed,
            tree=tree,
            parent_params=point,
            count=self._count(node),
            again=again,
            repeated=tuple(self._repeated),
            step=node.step,
            past=past,
            chooser=bench.meta.chooser(past.ended, seed, node.number, again, past.running) if learns else Chooser(),
            lineage=[past.tried(place) for place in path_to(node.parent or "")] if bench.models else [],
            refusal=partial(refusal_of, bench, tree),
            steering=Said(bench.state),
            playbook=bench.playbooks.give(node.id) if bench.playbooks and node.role is Role.SEARCH else None,
            deadline_s=bench.propose_s,
        )

    def _count(self, node: Node) -> int:
        """Drafts that compete in tuning, or changes that are tried next to each other."""
        if node.role is Role.CONTROL:
            return 1
        return self._bench.task.tune.trials if self._bench.task.tune else self._bench.at_once

    def _tune_of(self, tree: Tree) -> Callable[[Proposal], Awaitable[Tuned]] | None:
        """How an agent runs what it has against the cheaper target; None where there is none."""
        if not self._tuning.open:
            return None

        async def tune(proposal: Proposal) -> Tuned:
            with self._bench.shelf.storing():
                read = await read_offer(self._bench, tree, proposal)
            draft = self._draft(self._node.drafts + 1, proposal, read)
            return await self._tuning.try_out(draft.model_copy(update={"tried": True}))

        return tune

    def _parent_point(self, node: Node, tree: Tree) -> dict[str, Value] | None:
        """None at a root that is the workspace: its point is a person's, and nothing was learnt from it yet."""
        bench, run = self._bench, self._bench.state.run
        if bench.task.parameters is None or (node.parent == run.root and run.start is None):
            return None
        return point_in(tree, bench.task.parameters.file, bench.task.parameters.space)

    def _draft(self, number: int, proposal: Proposal, read: Offer) -> e.Proposed:
        return e.Proposed(
            node=self._name,
            draft=number,
            operator=proposal.operator,
            description=proposal.description,
            params=proposal.params,
            model=proposal.model,
            change=read.change,
            tree=read.tree,
            refused=read.refused,
            known_as=read.known_as,
            playbook=self._node.playbook if proposal.playbook is None else proposal.playbook,
            steered=self._steered,
            drawn=proposal.drawn,
        )


def _with_drawn(proposals: Sequence[Proposal], brief: Brief, node: Node) -> list[Proposal]:
    """As many as were asked for, each with what was chosen for it; a proposer need not say it itself."""
    found = [(it, _whole(it.drawn or brief.chooser.drawn, node)) for it in list(proposals)[: brief.count]]
    return [it if drawn == it.drawn else it.model_copy(update={"drawn": drawn}) for it, drawn in found]


def _whole(drawn: Drawn | None, node: Node) -> Drawn | None:
    """With what was chosen to begin its branch."""
    if node.drawn is None or SLOT not in node.drawn.arms:
        return drawn
    arms = {SLOT: node.drawn.arms[SLOT]}
    return Drawn(arms={**arms, **drawn.arms}, knobs=drawn.knobs) if drawn else Drawn(arms=arms)


def seed_of(run: Run, role: Role) -> int:
    """Another run, or the control, must not draw the same points again."""
    return run.seed + (run.number - 1) * _RUN_SEED + (_CONTROL_SEED if role is Role.CONTROL else 0)
