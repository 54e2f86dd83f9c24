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
from orchestrator.domain.certify import EACH, Block, Stand, look_at_blocks, turns
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Draft, Minimal, Node, PartRecord, Purpose, Role, Trial
from orchestrator.domain.verdict import Mode, Verdict, tolerate
from orchestrator.loop.again import CanNotCompare
from orchestrator.loop.candidate import point_in
from orchestrator.loop.certifying import bar_of
from orchestrator.loop.cohorts import measure_in
from orchestrator.loop.guards import check_tree
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of, unbooked, worst_of_guard, worst_of_trial
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Workbench
from orchestrator.minimise.pieces import Pieces
from orchestrator.minimise.search import Part, Search
from orchestrator.offload import offload

# Where scores are noisy: the probability at most that a selection which is as good as the winner is called worse. That
# leaves ballast in; a lower one would let through what is worse. What is left at the end gets twice the blocks.
_LEVEL = 0.2
_AT_THE_END = 2
# A run that landed on other hardware, or a winner's that came to nothing, is run again, so often at most for each.
_TRIES = 3
_NAMED = 3


@dataclass(frozen=True)
class Smaller:
    """The draft that is to be promoted, and its files."""

    draft: int
    tree: Tree
    why: str


@dataclass(frozen=True)
class _Measured:
    """What is known of a selection. `fate` is why it has no metrics, or why they do not count."""

    keeps: bool
    metrics: Mapping[str, float] | None = None
    fate: str = ""


class _UsedUp(Exception):
    """The caps leave no room for another trial; the message says which."""


class Minimising:
    """One node's way to its candidate."""

    _slot = Amounts.exact({Account.MINIMISATION: 1})

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self._known: dict[str, _Measured] = {}
        self._drafts: dict[str, int] = {}
        self._ids: dict[tuple[str, int], list[str]] = {}
        self._one_guard = asyncio.Lock()

    @property
    def _node(self) -> Node:
        return self._bench.state.nodes[self._name]

    @property
    def _winner(self) -> Node:
        return self._bench.state.nodes[self._node.parent or ""]

    async def run(self) -> Smaller | None:
        """None where there is nothing to promote; why is on record. Raises Free, and Refusal for a change that takes
        too long to compare.
        """
        bench = self._bench
        whole = await bench.tree(self._winner.id)
        pieces = await offload(Pieces, bench.root, whole, bench.task.parameters)
        self._look_back(whole)
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

    def _look_back(self, whole: Tree) -> None:
        """What is on record already: the winner itself, the candidates of this run, and earlier selections."""
        bench, state = self._bench, self._bench.state
        self._known, self._drafts, self._ids = {whole.digest: _Measured(True)}, {}, {}
        own = [node for node in state.nodes.values() if run_of(node.id) == state.campaign.run]
        for node in own:
            for trial in state.trials_of(node.id) if node.role is Role.MINIMISED else ():
                self._ids.setdefault((node.id, trial.draft), []).append(trial.id)
            for draft in state.drafts(node.id):
                if node.id == self._name and draft.tree:
                    self._drafts[draft.tree] = draft.number
                if found := self._seen(node, draft):
                    self._known.setdefault(draft.tree or "", found)
        root = state.nodes[state.run.root]
        if bench.certify.noisy and self._winner.kept:
            self._known.setdefault(bench.root.digest, _Measured(False, fate="the baseline"))
        elif not bench.certify.noisy and (found := self._of_candidate(root)):
            self._known.setdefault(bench.root.digest, found)

    def _seen(self, node: Node, draft: Draft) -> _Measured | None:
        """Of a noisy task, what was measured beside another winner, or once, tells nothing."""
        if node.role is Role.MINIMISED:
            same = node.id == self._name or not self._bench.certify.noisy
            return self._of_draft(node, draft.number) if same else None
        if draft.number != node.promoted or self._bench.certify.noisy:
            return None
        return self._of_candidate(node)

    def _of_candidate(self, node: Node) -> _Measured | None:
        for cohort, verdict in node.verdicts.items():
            if cohort in self._winner.verdicts:
                return self._against_winner(verdict)
        if node.ending and node.ending.charged and node.ending is not Ending.SCORED:
            return _Measured(False, fate=str(node.ending))
        return None

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
                asked = questions.send([bool(tree and self._known[tree.digest].keeps) for tree in trees])
            except StopIteration:
                return

    async def _measure(self, trees: Mapping[str, Tree], pieces: Pieces, kept: Mapping[Tree | None, Part]) -> None:
        """Those that are not known, side by side. All of them come to their end before anything is raised."""
        unknown = [tree for digest, tree in trees.items() if digest not in self._known]
        drafts = [self._draft_of(tree, _words(pieces, kept[tree])) for tree in unknown]
        at, waiting = 0, list(zip(drafts, unknown, strict=True))
        while at < len(waiting):
            room = self._room(len(waiting) - at)
            await self._measure_at_once(waiting[at : at + room])
            at += room

    async def _measure_at_once(self, probes: Sequence[tuple[int, Tree]]) -> None:
        found = await asyncio.gather(*(self._probe(*probe) for probe in probes), return_exceptions=True)
        for (_, tree), it in zip(probes, found, strict=True):
            if isinstance(it, _Measured):
                self._known[tree.digest] = it
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
        if not self._bench.certify.noisy or tree is None or tree.digest not in self._drafts:
            return True
        found = await self._probe(self._drafts[tree.digest], tree, self._bench.certify.blocks * _AT_THE_END)
        self._known[tree.digest] = found
        return found.keeps

    def _draft_of(self, tree: Tree, description: str) -> int:
        if tree.digest not in self._drafts:
            bench, number = self._bench, self._node.drafts + 1
            parameters = bench.task.parameters
            point = point_in(tree, parameters.file, parameters.space) if parameters else None
            told = {"operator": "minimise", "description": description, "params": point}
            bench.book.record(e.Proposed(node=self._name, draft=number, tree=tree.digest, tried=True, **told))
            self._drafts[tree.digest] = number
        return self._drafts[tree.digest]

    async def _probe(self, draft: int, tree: Tree, blocks: int = 0) -> _Measured:
        """Run a selection until it is known whether it keeps the score, and then its guards."""
        while (found := self._of_draft(self._node, draft, blocks)) is None:
            mine = not self._bench.certify.noisy or self._is_its_turn(draft)
            await self._run(draft, tree if mine else await self._bench.tree(self._winner.id), mine=mine)
            await self._have_winner_in(draft)
        for guard in self._bench.state.guards_of(self._name) if found.keeps else ():
            if not await self._passes(draft, tree, guard.name):
                return _Measured(False, found.metrics, f"the guard {guard.name} does not pass")
        return found

    async def _run(self, draft: int, tree: Tree, *, mine: bool) -> None:
        """One trial and its judging. On Free the hold stays open: the attempt closes it.

        The first run of a selection is paid for from the pool; repeats use no slot, as those of a candidate.
        """
        bench = self._bench
        is_first = not any(map(_counts, self._trials(self._name, draft)))
        slot = self._slot if is_first else Amounts()
        purpose, subject = (Purpose.MINIMISE, "") if mine else (Purpose.REFERENCE, self._winner.id)
        hold = self._reserve(f"minimise-{draft}", slot + worst_of_trial(bench, Mode.SUBMIT))
        trial = next((it for it in self._trials(self._name, draft, purpose) if _waits_for_judge(it)), None)
        if trial is None:
            trial = bench.state.trials[await run_trial(bench, self._name, purpose, draft, tree, subject=subject)]
            self._ids.setdefault((self._name, draft), []).append(trial.id)
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
                outputs = self._trials(self._name, draft, Purpose.MINIMISE)[-1].outputs
                await check_tree(bench, e.GuardIntended(node=self._name, guard=name, draft=draft), guard, tree, outputs)
                self._settle(hold, Amounts())
            return bench.state.drafts(self._name)[draft - 1].guarded[name]

    def _reserve(self, what: str, amounts: Amounts) -> str:
        book, hold = self._bench.book, f"{hold_of(self._node)}/{what}"
        if shortage := book.accounts.shortage(amounts):
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
        trial = next(reversed(self._trials(self._name, draft, Purpose.MINIMISE)), None)
        if bench.certify.noisy or trial is None or trial.verdict is None or not trial.verdict.valid:
            return
        await measure_in(bench, self._winner.id, trial.verdict.cohort)

    def _of_draft(self, node: Node, draft: int, blocks: int = 0) -> _Measured | None:
        """What its trials say; None where they do not say enough yet. `blocks`, if not as many as a test has."""
        mine = [it for it in self._trials(node.id, draft, Purpose.MINIMISE) if _counts(it)]
        bad = next((fate for it in mine if (fate := _fate(it))), None)
        if bad is not None:
            return _Measured(False, fate=bad)
        if self._bench.certify.noisy:
            return self._tested(draft, mine, blocks or self._bench.certify.blocks)
        verdicts = [it.verdict for it in mine if it.verdict and it.verdict.cohort in self._winner.verdicts]
        return self._against_winner(verdicts[-1]) if verdicts else None

    def _against_winner(self, verdict: Verdict) -> _Measured:
        bench = self._bench
        bar = bar_of(bench.state, self._winner, verdict.cohort, bench.ranking)
        found = tolerate(verdict, bar, bench.ranking, lower_tier=bench.state.run.lower_tier)
        return _Measured(found.kept, verdict.metrics, "" if found.kept else "worse")

    def _tested(self, draft: int, mine: Sequence[Trial], most: int) -> _Measured | None:
        """The evidence may be looked at as often as one likes, and more blocks may follow: see certify."""
        blocks, cohort = self._blocks(draft), self._cohort
        found = look_at_blocks(blocks, _LEVEL, max(most, len(blocks)), both=True)
        scores = [it.verdict.metrics for it in mine if it.verdict and it.verdict.cohort == cohort]
        middle = {name: sorted(it[name] for it in scores)[len(scores) // 2] for name in (scores[0] if scores else ())}
        if found.stand is not Stand.OPEN:
            return _Measured(found.stand is not Stand.WORSE, middle, found.words)
        if len(self._trials(self._name, draft)) >= _TRIES * 2 * EACH * most:
            return _Measured(False, middle, "it could not be measured beside the winner")
        return None

    def _is_its_turn(self, draft: int) -> bool:
        block, at = divmod(sum(len(it.champion) + len(it.candidate) for it in self._blocks(draft)), 2 * EACH)
        return turns(f"{self._bench.state.run.seed}/{self._name}/{draft}", block)[at]

    def _blocks(self, draft: int) -> list[Block]:
        """The runs of a draft and of the winner beside it, in the order of their turns."""
        ranking, cohort = self._bench.ranking, self._cohort
        purposes = (Purpose.MINIMISE, Purpose.REFERENCE)
        told = [(it.purpose, it.verdict) for it in self._trials(self._name, draft, *purposes) if it.verdict]
        sides = [
            (purpose is Purpose.MINIMISE, ranking.standing(verdict.metrics))
            for purpose, verdict in told
            if verdict.valid and verdict.cohort == cohort
        ]
        blocks = (sides[at : at + 2 * EACH] for at in range(0, len(sides), 2 * EACH))
        return [Block(*(tuple(it for mine, it in block if mine is side) for side in (False, True))) for block in blocks]

    @property
    def _cohort(self) -> str:
        """The present one where the winner was measured there."""
        present, first = self._bench.state.run.cohort, self._winner.verdict
        return present if present in self._winner.verdicts else first.cohort if first else ""

    def _trials(self, node: str, draft: int, *purposes: Purpose) -> list[Trial]:
        """Those of a draft, in their order."""
        found = (self._bench.state.trials[name] for name in self._ids.get((node, draft), ()))
        return [it for it in found if not purposes or it.purpose in purposes]

    def _told(self, search: Search, pieces: Pieces, short: str) -> Minimal:
        """In a thread: what is left, with the score without each part, and what went."""
        kept = []
        for part in search.parts():
            tree = pieces.tree(search.kept - part)
            found = self._known.get(tree.digest) if tree else _Measured(False, fate="it would not parse")
            found = found or _Measured(False, fate="not measured")
            worth = dict(found.metrics) if found.metrics else None
            kept.append(PartRecord(**vars(pieces.told(part)), worth=worth, fate=found.fate))
        dropped = [PartRecord(**vars(pieces.told(part))) for part in search.gone()]
        why = short or (f"more than {pieces.most} parts, so that they were not cut any finer" if pieces.coarse else "")
        return Minimal(kept=tuple(kept), dropped=tuple(dropped), complete=not short, why=why)


def _waits_for_judge(trial: Trial) -> bool:
    return trial.ended and trial.ending is None and not trial.judged


def _counts(trial: Trial) -> bool:
    """Whether it came to an end of its own."""
    return trial.ended and (trial.judged or bool(trial.ending and not trial.ending.retryable))


def _fate(trial: Trial) -> str | None:
    """Why a trial that counts has no score that counts; None where it has one."""
    if trial.ending is not None:
        return str(trial.ending)
    if trial.fault is not None:
        return "the judge cannot score it"
    if trial.verdict is None or not trial.verdict.valid:
        return "no solution"
    return "too good to be believed" if trial.verdict.suspect else None


def _words(pieces: Pieces, kept: Part) -> str:
    """What a selection leaves out."""
    gone = [pieces.told(frozenset({at})).where for at in sorted(pieces.whole - kept)]
    more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
    return f"without {', '.join(dict.fromkeys(gone[:_NAMED]))}{more}"[:400]
