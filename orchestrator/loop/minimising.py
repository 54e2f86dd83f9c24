"""A winner taken apart: which parts of its change its score stands on, found by trials from a pool of their own.

The parts are those between the root of the run and the winner, whatever attempts they came from. Every selection that
is tried is a draft of the minimised node, measured like a candidate. Nothing of the search is kept but what was
measured: after a crash it is begun again, and asks the same questions, which the record answers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.budget import Account, Amounts
from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.records import Minimal, Node, PartRecord, Purpose
from orchestrator.domain.verdict import Mode
from orchestrator.loop.again import CanNotCompare
from orchestrator.loop.candidate import point_in
from orchestrator.loop.cohorts import measure_in
from orchestrator.loop.guards import check_tree
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of, unbooked, worst_of_guard, worst_of_trial
from orchestrator.loop.part_selections import REFUSED, Measured, Selections, counts, waits_for_judge
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Workbench
from orchestrator.minimise.pieces import Pieces
from orchestrator.minimise.search import Part, Search
from orchestrator.offload import offload

# Where scores are noisy, what is left at the end gets twice the blocks.
_AT_THE_END = 2
_NAMED = 3


@dataclass(frozen=True)
class Smaller:
    """The draft that is to be promoted, and its files."""

    draft: int
    tree: Tree
    why: str


class _UsedUp(Exception):
    """The caps leave no room for another trial; the message says which."""


class Minimising:
    """One node's way to its candidate."""

    _slot = Amounts.exact({Account.MINIMISATION: 1})

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self._of = Selections(bench, node)
        self._one_guard = asyncio.Lock()

    @property
    def _node(self) -> Node:
        return self._of.node

    @property
    def _winner(self) -> Node:
        return self._of.winner

    async def run(self) -> Smaller | None:
        """None where there is nothing to promote; why is on record. Raises Free, and Refusal for a change that takes
        too long to compare.
        """
        bench = self._bench
        whole = await bench.tree(self._winner.id)
        pieces = await offload(lambda: Pieces(bench.root, whole, bench.task.parameters, policy=bench.policy))
        self._of.look_back(whole)
        search, short = Search(pieces.levels, bench.probes, pieces.rows), ""
        try:
            await self._ask(search, pieces)
            while not await self._stands(await offload(pieces.tree, search.kept)):
                # One answer was wrong. It is known now, so that the search goes another way from there on.
                search = Search(pieces.levels, bench.probes, pieces.rows)
                await self._ask(search, pieces)
        except (_UsedUp, CanNotCompare) as error:
            short = str(error)
        minimal = await offload(self._told, search, pieces, short)
        bench.book.record(e.Minimised(node=self._name, minimal=minimal))
        tree = await offload(pieces.tree, search.kept)
        if tree is None or not minimal.dropped or not minimal.kept:
            return None
        count = len(minimal.kept) + len(minimal.dropped)
        why = f"{len(minimal.kept)} of {count} parts of {self._winner.id} keep its score"
        return Smaller(self._draft_of(tree, why), tree, why)

    async def _ask(self, search: Search, pieces: Pieces) -> None:
        """Put the search's questions until it has none. Raises _UsedUp."""
        questions = search.questions()
        asked = next(questions, None)
        while asked is not None:
            trees = await offload(lambda kept: [pieces.tree(it) for it in kept], asked)
            await self._measure(
                {tree.digest: tree for tree in trees if tree}, pieces, dict(zip(trees, asked, strict=True))
            )
            try:
                asked = questions.send([bool(tree and self._of.known[tree.digest].keeps) for tree in trees])
            except StopIteration:
                return

    async def _measure(self, trees: Mapping[str, Tree], pieces: Pieces, kept: Mapping[Tree | None, Part]) -> None:
        """Those that are not known, side by side. All of them come to their end before anything is raised."""
        unknown = [tree for digest, tree in trees.items() if digest not in self._of.known]
        drafts = [self._draft_of(tree, _words(pieces, kept[tree])) for tree in unknown]
        at, waiting = 0, list(zip(drafts, unknown, strict=True))
        while at < len(waiting):
            room = self._room(len(waiting) - at)
            await self._measure_at_once(waiting[at : at + room])
            at += room

    async def _measure_at_once(self, probes: Sequence[tuple[int, Tree]]) -> None:
        found = await asyncio.gather(*(self._probe(*probe) for probe in probes), return_exceptions=True)
        for (_, tree), it in zip(probes, found, strict=True):
            if isinstance(it, Measured):
                self._of.known[tree.digest] = it
        failed = [it for it in found if isinstance(it, BaseException)]
        # Of several, one that frees the attempt or ends the session comes before one that only ends the search.
        for error in sorted(failed, key=lambda it: isinstance(it, _UsedUp | CanNotCompare)):
            raise error

    def _room(self, wanted: int) -> int:
        """How many the caps let run side by side. One that does not fit says so itself."""
        one, accounts = self._slot + worst_of_trial(self._bench, Mode.SUBMIT), self._bench.book.accounts
        fits = (count for count in range(wanted, 1, -1) if not accounts.shortage(sum([one] * count, Amounts())))
        return next(fits, 1)

    async def _stands(self, tree: Tree | None) -> bool:
        """Whether what is left stands a longer look, where scores are noisy: it was chosen because it looked well."""
        if not self._bench.certify.noisy or tree is None or tree.digest not in self._of.drafts:
            return True
        found = await self._probe(self._of.drafts[tree.digest], tree, self._bench.certify.blocks * _AT_THE_END)
        self._of.known[tree.digest] = found
        return found.keeps

    def _draft_of(self, tree: Tree, description: str) -> int:
        if tree.digest not in self._of.drafts:
            bench, number = self._bench, self._node.drafts + 1
            parameters = bench.task.parameters
            point = point_in(tree, parameters.file, parameters.space) if parameters else None
            told = {"operator": "minimise", "description": description, "params": point}
            bench.book.record(e.Proposed(node=self._name, draft=number, tree=tree.digest, tried=True, **told))
            self._of.drafts[tree.digest] = number
        return self._of.drafts[tree.digest]

    async def _probe(self, draft: int, tree: Tree, blocks: int = 0) -> Measured:
        """Run a selection until it is known whether it keeps the score, and then its guards."""
        while (found := self._of.of_draft(self._node, draft, blocks)) is None:
            mine = not self._bench.certify.noisy or self._of.is_its_turn(draft)
            await self._run(draft, tree if mine else await self._bench.tree(self._winner.id), mine=mine)
            await self._have_winner_in(draft)
        for guard in self._bench.state.guards_of(self._name) if found.keeps else ():
            if not await self._passes(draft, tree, guard.name):
                return Measured(False, found.metrics, REFUSED.format(guard.name))
        return found

    async def _run(self, draft: int, tree: Tree, *, mine: bool) -> None:
        """One trial and its judging. On Free the hold stays open: the attempt closes it.

        The first run of a selection is paid for from the pool; repeats use no slot, as those of a candidate.
        """
        bench = self._bench
        is_first = not any(map(counts, self._of.trials(self._name, draft)))
        slot = self._slot if is_first else Amounts()
        purpose, subject = (Purpose.MINIMISE, "") if mine else (Purpose.REFERENCE, self._winner.id)
        hold = self._reserve(f"minimise-{draft}", slot + worst_of_trial(bench, Mode.SUBMIT))
        trial = next((it for it in self._of.trials(self._name, draft, purpose) if waits_for_judge(it)), None)
        if trial is None:
            trial = bench.state.trials[await run_trial(bench, self._name, purpose, draft, tree, subject=subject)]
            self._of.add(draft, trial.id)
        if trial.ending is None:
            await judge_trial(bench, trial.id)
        self._settle(hold, slot)

    async def _passes(self, draft: int, tree: Tree, name: str) -> bool:
        """Guards cost as much as a trial, so only what keeps the score is looked at. One at a time for a node."""
        bench = self._bench
        async with self._one_guard:
            guarded = bench.state.drafts(self._name)[draft - 1].guarded
            if name not in guarded:
                guard = next(it for it in bench.state.guards_of(self._name) if it.name == name)
                hold = self._reserve(f"guard-{draft}", worst_of_guard(bench, guard))
                outputs = self._of.trials(self._name, draft, Purpose.MINIMISE)[-1].outputs
                await check_tree(bench, e.GuardIntended(node=self._name, guard=name, draft=draft), guard, tree, outputs)
                self._settle(hold, Amounts())
            return bench.state.drafts(self._name)[draft - 1].guarded[name]

    def _reserve(self, what: str, amounts: Amounts) -> str:
        own = hold_of(self._node)
        book, hold = self._bench.book, f"{own}/{what}"
        if shortage := book.accounts.shortage(amounts, within=own):
            raise _UsedUp(str(shortage))
        book.record(e.Reserved(hold=hold, amounts=amounts.as_row()))
        return hold

    def _settle(self, hold: str, slot: Amounts) -> None:
        """With all that the node spent by now: where several run side by side, the others settle the less."""
        spent = slot + unbooked(self._node)
        self._bench.book.record(e.Settled(hold=hold, node=self._name, spent=spent.as_row()))

    async def _have_winner_in(self, draft: int) -> None:
        """The winner is measured again where a selection was measured on something else. Raises CanNotCompare."""
        bench = self._bench
        trial = next(reversed(self._of.trials(self._name, draft, Purpose.MINIMISE)), None)
        if bench.certify.noisy or trial is None or trial.verdict is None or not trial.verdict.valid:
            return
        await measure_in(bench, self._winner.id, trial.verdict.cohort)

    def _told(self, search: Search, pieces: Pieces, short: str) -> Minimal:
        """In a thread: what is left, with the score without each part, and what went."""
        kept = []
        for part in search.parts():
            tree = pieces.tree(search.kept - part)
            found = self._of.known.get(tree.digest) if tree else Measured(False, fate="it would not parse")
            found = found or Measured(False, fate="not measured")
            worth = dict(found.metrics) if found.metrics else None
            kept.append(PartRecord(**vars(pieces.told(part)), worth=worth, fate=found.fate))
        dropped = [PartRecord(**vars(pieces.told(part))) for part in search.gone()]
        why = short or (f"more than {pieces.most} parts, so that they were not cut any finer" if pieces.coarse else "")
        return Minimal(kept=tuple(kept), dropped=tuple(dropped), complete=not short, why=why)


def _words(pieces: Pieces, kept: Part) -> str:
    """What a selection leaves out."""
    gone = [pieces.told(frozenset({at})).where for at in sorted(pieces.whole - kept)]
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    return f"without {', '.join(dict.fromkeys(gone[:_NAMED]))}{more}"[:400]
