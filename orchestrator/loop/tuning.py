"""Trials against the cheaper target, paid from a pool of their own: the loop's, and those that an agent asks for."""

from orchestrator.budget import Account, Amounts
from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Node, Purpose, Role, Trial
from orchestrator.domain.verdict import Mode
from orchestrator.loop.interruption import loose_ends
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of, unbooked, worst_of_trial
from orchestrator.loop.steps import tune_trial
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Free, Workbench
from orchestrator.offload import offload
from orchestrator.proposers import Tuned

# What an agent is told of a score: enough to see a difference, too little to read single bits of the gold from.
_DIGITS = 4


class Tuning:
    """One attempt's. `open` until the pool is used up, and never for a task without a cheaper target."""

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self.open = bench.task.tune is not None

    @property
    def _node(self) -> Node:
        return self._bench.state.nodes[self._name]

    async def run(self, draft: int) -> None:
        """Run and judge a draft, 0 being the baseline itself. Where the pool is used up, tuning is over."""
        bench, node = self._bench, self._node
        hold, pool = f"{hold_of(node)}/tune", _slot(node)
        if not await self._reserve(hold, pool + worst_of_trial(bench, Mode.TUNE)):
            self.open = False
            return
        trial = tune_trial(bench.state, node, draft)
        if trial is None or not trial.ended or trial.ending:
            tree = await offload(draft_tree, bench, node, draft)
            name = await run_trial(bench, node.id, Purpose.TUNE, draft, tree)
            trial = bench.state.trials[name]
        if trial.ending is None:
            await judge_trial(bench, trial.id)
        bench.book.record(e.Settled(hold=hold, node=node.id, spent=(pool + unbooked(self._node)).as_row()))

    async def try_out(self, draft: e.Proposed) -> Tuned:
        """What an agent asks for while it works on its proposal. Whatever goes wrong is told as a fixed code.

        The same files are measured once: an agent that may ask again and again could average the noise away.
        """
        bench = self._bench
        if draft.refused is not None:
            return Tuned(None, f"refused: {draft.refused}", self.left)
        if known := self._measured(draft.tree):
            return Tuned(self._score(known), _told(known), self.left)
        if not self.open or self.left == 0:
            return Tuned(None, "no tuning is left", 0)
        if bench.breaker.is_open:
            return Tuned(None, "a provider is away; go on without, or try again later", self.left)
        if bench.door.is_taken:  # an agent's clock runs, and nobody knows for how long it would wait
            return Tuned(None, "the machine is taken; go on without, or try again later", self.left)
        bench.book.record(draft)
        try:
            await self.run(draft.draft)
        except Free as free:
            self._give_back()
            if free.provider:
                bench.breaker.failed(free.provider, str(free))
            return Tuned(None, free.ending, self.left)
        trial = tune_trial(bench.state, self._node, draft.draft)
        return Tuned(self._score(trial), _told(trial), self.left)

    def close_cut(self) -> None:
        """A tune that its asker did not wait for, whose chamber is gone: it is used up, and what it cost is booked."""
        bench, hold = self._bench, f"{hold_of(self._node)}/tune"
        if hold in bench.book.accounts.holds:
            bench.book.record(*loose_ends(bench, self._node, "the agent that asked for it did not wait"))
            spent = _slot(self._node) + unbooked(self._node)
            bench.book.record(e.Settled(hold=hold, node=self._name, spent=spent.as_row()))

    def _measured(self, tree: str | None) -> Trial | None:
        """The tune trial of an earlier try with the same files, once it came to an end of its own."""
        for draft in self._bench.state.drafts(self._name):
            trial = tune_trial(self._bench.state, self._node, draft.number) if draft.tree == tree else None
            if trial and trial.ended and (trial.judged or (trial.ending and trial.ending.charged)):
                return trial
        return None

    def _score(self, trial: Trial | None) -> float | None:
        first = self._bench.ranking.metrics[0].name
        verdict = trial.verdict if trial else None
        if verdict is None or not verdict.valid or verdict.suspect or first not in verdict.metrics:
            return None
        return float(f"{verdict.metrics[first]:.{_DIGITS}g}")

    @property
    def left(self) -> int:
        """How many more an agent may ask for: as many as an attempt has, and as the pool has left."""
        tune = self._bench.task.tune
        if tune is None or not self.open:
            return 0
        tried = sum(draft.tried for draft in self._bench.state.drafts(self._name))
        pool = self._bench.book.accounts.left(Account.TUNES)
        own = max(0, tune.trials - tried)
        return own if pool is None else min(own, pool)

    def _give_back(self) -> None:
        """The slot of a tune trial that ended free; what it cost stays spent."""
        hold = f"{hold_of(self._node)}/tune"
        if hold in self._bench.book.accounts.holds:
            spent = unbooked(self._node).as_row()
            self._bench.book.record(e.Refunded(hold=hold, node=self._name, spent=spent))

    async def _reserve(self, hold: str, amounts: Amounts) -> bool:
        """Wait only for the tuning pool itself: what else is short is held by attempts that may wait for us."""
        book = self._bench.book
        while shortage := book.accounts.shortage(amounts):
            if shortage.account is not Account.TUNES or not shortage.could_fit_later:
                return False
            await book.changed()
        book.record(e.Reserved(hold=hold, amounts=amounts.as_row()))
        return True


def draft_tree(bench: Workbench, node: Node, number: int) -> Tree:
    """Made again from the recorded proposal: the same proposal on the same parent is the same tree. In a thread."""
    if number == 0:
        return bench.root
    draft = bench.state.drafts(node.id)[number - 1]
    text = bench.artifacts.get(draft.change).decode() if draft.change else None
    proposal = Proposal(operator=draft.operator, description=draft.description, params=draft.params, text=text)
    tree = bench.next_tree(bench.tree_here(node.parent or ""), proposal)
    if tree.digest != draft.tree:
        raise AssertionError(f"draft {number} of {node.id} does not give its recorded tree")
    return tree


def _told(trial: Trial | None) -> str:
    if trial is None:
        return "no tuning is left"
    if trial.ending:
        return trial.ending
    if trial.fault:
        return "the judge cannot score it"
    return "scored" if trial.verdict and trial.verdict.valid else "not a solution"


def _slot(node: Node) -> Amounts:
    return Amounts() if node.role is Role.BASELINE else Amounts.exact({Account.TUNES: 1})
