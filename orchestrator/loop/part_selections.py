"""What is on record of the selections of a winner's parts: which of them keep its score. It runs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain.certify import EACH, Block, Stand, look_at_blocks, turns
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Draft, Node, Purpose, Role, Trial
from orchestrator.domain.verdict import Verdict, tolerate
from orchestrator.loop.certifying import bar_of
from orchestrator.loop.workbench import Workbench

# Where scores are noisy: the probability at most that a selection which is as good as the winner is called worse. That
# leaves ballast in; a lower one would let through what is worse.
_LEVEL = 0.2
REFUSED = "the guard {} does not pass"
# A run that landed on other hardware, or a winner's that came to nothing, is run again, so often at most for each.
_TRIES = 3


@dataclass(frozen=True)
class Measured:
    """What is known of a selection. `fate` is why it has no metrics, or why they do not count."""

    keeps: bool
    metrics: Mapping[str, float] | None = None
    fate: str = ""


class Selections:
    """Those of one node that is being minimised. `known` has what was found of a tree by its digest, `drafts` the
    number of each that was proposed.
    """

    def __init__(self, bench: Workbench, node: str) -> None:
        self._bench = bench
        self._name = node
        self.known: dict[str, Measured] = {}
        self.drafts: dict[str, int] = {}
        self._ids: dict[tuple[str, int], list[str]] = {}

    @property
    def node(self) -> Node:
        return self._bench.state.nodes[self._name]

    @property
    def winner(self) -> Node:
        return self._bench.state.nodes[self.node.parent or ""]

    def look_back(self, whole: Tree) -> None:
        """What is on record already: the winner itself, the candidates of this run, and earlier selections."""
        bench, state = self._bench, self._bench.state
        self.known, self.drafts, self._ids = {whole.digest: Measured(True)}, {}, {}
        own = [node for node in state.nodes.values() if run_of(node.id) == state.campaign.run]
        for node in own:
            for trial in state.trials_of(node.id) if node.role is Role.MINIMISED else ():
                self._ids.setdefault((node.id, trial.draft), []).append(trial.id)
            for draft in state.drafts(node.id):
                if node.id == self._name and draft.tree:
                    self.drafts[draft.tree] = draft.number
                seen = self._seen(node, draft)
                if seen and (found := self._guarded(node, draft, seen)):
                    self.known.setdefault(draft.tree or "", found)
        root = state.nodes[state.run.root]
        if bench.certify.noisy and self.winner.kept:
            self.known.setdefault(bench.root.digest, Measured(False, fate="the baseline"))
        elif not bench.certify.noisy and (found := self._of_candidate(root)):
            self.known.setdefault(bench.root.digest, found)

    def _seen(self, node: Node, draft: Draft) -> Measured | None:
        """Of a noisy task, what was measured beside another winner, or once, tells nothing."""
        if node.role is Role.MINIMISED:
            same = node.id == self._name or not self._bench.certify.noisy
            return self.of_draft(node, draft.number) if same else None
        if draft.number != node.promoted or self._bench.certify.noisy:
            return None
        return self._of_candidate(node)

    def _guarded(self, node: Node, draft: Draft, found: Measured) -> Measured | None:
        """With what the guards said of it, which look at nothing that loses the score; None where one was not asked."""
        state, said = self._bench.state, draft.guarded if node.role is Role.MINIMISED else node.guarded
        held = state.guards_of(node.id)
        for guard in state.guards_of(self._name) if found.keeps else ():
            if guard not in held or guard.name not in said:
                return None
            if not said[guard.name]:
                return Measured(False, found.metrics, REFUSED.format(guard.name))
        return found

    def _of_candidate(self, node: Node) -> Measured | None:
        for cohort, verdict in node.verdicts.items():
            if cohort in self.winner.verdicts:
                return self._against_winner(verdict)
        if node.ending and node.ending.charged and node.ending is not Ending.SCORED:
            return Measured(False, fate=str(node.ending))
        return None

    def add(self, draft: int, trial: str) -> None:
        """A trial that was run for a draft of the node."""
        self._ids.setdefault((self._name, draft), []).append(trial)

    def trials(self, node: str, draft: int, *purposes: Purpose) -> list[Trial]:
        """Those of a draft, in their order."""
        found = (self._bench.state.trials[name] for name in self._ids.get((node, draft), ()))
        return [it for it in found if not purposes or it.purpose in purposes]

    def of_draft(self, node: Node, draft: int, blocks: int = 0) -> Measured | None:
        """What its trials say; None where they do not say enough yet. `blocks`, if not as many as a test has."""
        mine = [it for it in self.trials(node.id, draft, Purpose.MINIMISE) if counts(it)]
        bad = next((fate for it in mine if (fate := _fate(it))), None)
        if bad is not None:
            return Measured(False, fate=bad)
        if self._bench.certify.noisy:
            return self._tested(draft, mine, blocks or self._bench.certify.blocks)
        verdicts = [it.verdict for it in mine if it.verdict and it.verdict.cohort in self.winner.verdicts]
        return self._against_winner(verdicts[-1]) if verdicts else None

    def _against_winner(self, verdict: Verdict) -> Measured:
        bench = self._bench
        bar = bar_of(bench.state, self.winner, verdict.cohort, bench.ranking)
        found = tolerate(verdict, bar, bench.ranking, lower_tier=bench.state.run.lower_tier)
        return Measured(found.kept, verdict.metrics, "" if found.kept else "worse")

    def _tested(self, draft: int, mine: Sequence[Trial], most: int) -> Measured | None:
        """The evidence may be looked at as often as one likes, and more blocks may follow: see certify."""
        blocks, cohort = self._blocks(draft), self._cohort
        found = look_at_blocks(blocks, _LEVEL, max(most, len(blocks)), both=True)
        scores = [it.verdict.metrics for it in mine if it.verdict and it.verdict.cohort == cohort]
        middle = {name: sorted(it[name] for it in scores)[len(scores) // 2] for name in (scores[0] if scores else ())}
        if found.stand is not Stand.OPEN:
            return Measured(found.stand is not Stand.WORSE, middle, found.words)
        if len(self.trials(self._name, draft)) >= _TRIES * 2 * EACH * most:
            return Measured(False, middle, "it could not be measured beside the winner")
        return None

    def is_its_turn(self, draft: int) -> bool:
        block, at = divmod(sum(len(it.champion) + len(it.candidate) for it in self._blocks(draft)), 2 * EACH)
        return turns(f"{self._bench.state.run.seed}/{self._name}/{draft}", block)[at]

    def _blocks(self, draft: int) -> list[Block]:
        """The runs of a draft and of the winner beside it, in the order of their turns."""
        ranking, cohort = self._bench.ranking, self._cohort
        purposes = (Purpose.MINIMISE, Purpose.REFERENCE)
        told = [(it.purpose, it.verdict) for it in self.trials(self._name, draft, *purposes) if it.verdict]
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
        present, first = self._bench.state.run.cohort, self.winner.verdict
        return present if present in self.winner.verdicts else first.cohort if first else ""


def waits_for_judge(trial: Trial) -> bool:
    return trial.ended and trial.ending is None and not trial.judged


def counts(trial: Trial) -> bool:
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
