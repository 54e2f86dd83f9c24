"""A past that is written down as it goes, and a whole search in a few lines: the best node is built on."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.proposal import Proposal
from orchestrator.meta.chooser import Meta
from orchestrator.proposers import Brief, Exhausted, Proposer, Tried

Score = Callable[[Tree], float | None]


class Remembered:
    """Implements Past."""

    def __init__(self, root: Tree, score: float | None = 0.0) -> None:
        self.ended: list[Tried] = []
        self.running: Sequence[Tried] = ()
        self.trees = {"1": root}
        self.scores: dict[str, float | None] = {"1": score}
        self.digests = {root.digest}
        self._meta = Meta()

    def knows(self, digest: str) -> bool:
        return digest in self.digests

    def tree(self, node: str) -> Tree:
        return self.trees[node]

    def add(self, parent: str, proposal: Proposal, tree: Tree, score: float | None) -> str:
        number = len(self.ended) + 1
        node = f"{parent}.{number}"
        self.trees[node], self.scores[node] = tree, score
        self.digests.add(tree.digest)
        merits, before = ((value,) if value is not None else None for value in (score, self.scores[parent]))
        self.ended.append(
            Tried(node, number, parent, proposal.operator, proposal.description, None, merits, before, kept=False)
        )
        return node

    @property
    def best(self) -> str:
        return max(self.scores, key=lambda node: (self.scores[node] is not None, self.scores[node] or 0.0))

    def brief(self, number: int, *, seed: int = 1, parent: str | None = None, count: int = 1, again: int = 0) -> Brief:
        parent = parent or self.best
        return Brief(
            node=f"{parent}.{number}",
            parent=parent,
            number=number,
            seed=seed,
            tree=self.trees[parent],
            count=count,
            again=again,
            past=self,
            chooser=self._meta.chooser(self.ended, seed, number, again),
        )


async def search(proposer: Proposer, policy: Policy, root: Tree, score: Score, attempts: int, seed: int) -> Remembered:
    past = Remembered(root, score(root))
    for number in range(1, attempts + 1):
        brief = past.brief(number, seed=seed)
        try:
            [proposal] = await proposer.propose(brief)
        except Exhausted:
            break
        tree = apply_text(brief.tree, proposal.text or "", policy)
        past.add(brief.parent, proposal, tree, score(tree))
    return past


def failed(tried: Tried) -> Tried:
    return replace(tried, merits=None)
