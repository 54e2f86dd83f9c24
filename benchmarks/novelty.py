"""What novelty saves: a search whose proposer repeats itself in other words, as models do, with and without it.

Programs, changes and their forms are real text, compared by the loop's own code. An idea adds some lines to a small
program; its gain was drawn beforehand. Offers repeat ideas, write them otherwise each time, and vary a line of them
that does nothing.
"""

import random
import statistics
from dataclasses import dataclass, field

from benchmarks.chance import of_mean
from benchmarks.figure import Figure
from orchestrator.change import Tree
from orchestrator.population.likeness import Likeness, alike, likeness
from orchestrator.population.threshold import Threshold

_IDEAS = 40
_ASKED = 8
_WORDS = ("part", "share", "width", "edge", "cost", "gain", "left", "step", "rest", "size")


@dataclass(frozen=True)
class Offer:
    """`idle` is the variant of the line that does nothing."""

    idea: int
    idle: int
    text: str


class Proposer:
    """Has few ideas that it likes and many that it rarely has."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"proposer/{seed}")
        order = self._rng.sample(range(_IDEAS), _IDEAS)
        self._weights = [1 / (1 + order[idea]) for idea in range(_IDEAS)]
        self.gains = [max(0.0, self._rng.gauss(-0.3, 0.5)) for _ in range(_IDEAS)]

    def offer(self, ideas: tuple[int, ...]) -> Offer:
        """One idea more than the parent has; one that it has already is written again."""
        idea = self._rng.choices(range(_IDEAS), self._weights)[0]
        idle = self._rng.choice((0, 0, self._rng.randrange(1, 1000)))
        blocks = [_block(it, 0, None) for it in ideas if it != idea]
        return Offer(idea, idle, program([*blocks, _block(idea, idle, self._rng)]))


def program(blocks: list[str]) -> str:
    return "def solve(items):\n    total = 0.0\n" + "".join(blocks) + "    return total\n"


def _block(idea: int, idle: int, rng: random.Random | None) -> str:
    """An idea in eight lines, in its own words where there are dice."""
    name, other, number = "value", "found", f"{idea + 1}.5"
    comment, blank = "", ""
    if rng:
        name, other = rng.sample(_WORDS, 2)
        number = rng.choice((f"{idea + 1}.5", f"{idea + 1}.50", f"{10 * idea + 15}e-1"))
        comment, blank = rng.choice(("", "  # try it")), rng.choice(("", "\n"))
    return (
        f"    {name}_{idea} = rule_{idea}(items, {number}){comment}\n{blank}"
        f"    {other}_{idea} = [scale_{idea}(it) for it in items if it > {name}_{idea}]\n"
        f"    if len({other}_{idea}) > {idea % 5}:{comment}\n"
        f"        total += sum({other}_{idea}) * weight_{idea}(items)\n"
        f"    log('idea {idea}', {idle})\n"
    )


@dataclass
class Search:
    """Builds on the best; `scores` has the best score after each attempt."""

    proposer: Proposer
    threshold: Threshold | None
    ideas: tuple[int, ...] = ()
    scores: list[float] = field(default_factory=list)
    rejected: int = 0

    def run(self, attempts: int) -> "Search":
        root = parent = Tree.of({"solve.py": program([])})
        bytes_seen, forms = {root.digest}, {likeness(root, root, root).form}
        siblings: list[tuple[Likeness, float]] = []
        best = 0.0
        while len(self.scores) < attempts:
            found = self._new(root, parent, bytes_seen, forms, siblings)
            if found is None:
                break
            tree, mark, offer, twin = found
            ideas = tuple(sorted({*self.ideas, offer.idea}))
            score = sum(self.proposer.gains[it] for it in ideas)
            if self.threshold and mark and twin:
                self.threshold.count(twin[0], same=twin[1] == score)
            if mark:
                siblings.append((mark, score))
            if score > best:
                best, parent, self.ideas, siblings = score, tree, ideas, []
            self.scores.append(best)
        return self

    def _new(
        self, root: Tree, parent: Tree, bytes_seen: set[str], forms: set[str], siblings: list[tuple[Likeness, float]]
    ) -> tuple[Tree, Likeness | None, Offer, tuple[float, float] | None] | None:
        for _ in range(_ASKED * 20):
            offer = self.proposer.offer(self.ideas)
            tree = Tree.of({"solve.py": offer.text})
            if tree.digest in bytes_seen:
                continue
            if self.threshold is None:
                bytes_seen.add(tree.digest)
                return tree, None, offer, None
            mark = likeness(root, parent, tree)
            near = max(((alike(mark.sketch, it.sketch), score) for it, score in siblings), default=None)
            share = 1.0 if mark.form in forms else near[0] if near else 0.0
            if self.threshold.refuses(share, mark.form):
                self.rejected += 1
                continue
            bytes_seen.add(tree.digest)
            forms.add(mark.form)
            return tree, mark, offer, near
        return None


def _first(scores: list[float], target: float) -> int:
    return next((at for at, score in enumerate(scores, 1) if score >= target - 1e-9), len(scores))


def measure(seeds: int, attempts: int = 80) -> list[Figure]:
    figures = []
    plain = [Search(Proposer(seed), None).run(attempts) for seed in range(seeds)]
    for name, said in (("0.95", 0.95), ("learn", None)):
        novel = [Search(Proposer(seed), Threshold(said)).run(attempts) for seed in range(seeds)]
        pairs = list(zip(novel, plain, strict=True))
        targets = [min(one.scores[-1], other.scores[-1]) for one, other in pairs]
        firsts = [(_first(a.scores, it), _first(b.scores, it)) for (a, b), it in zip(pairs, targets, strict=True)]
        saved = [1 - mine / its for mine, its in firsts]
        gains = [one.scores[-1] - other.scores[-1] for one, other in pairs]
        low, high = of_mean(saved)
        way = f"novelty {name}: share of attempts saved on the way to the same score"
        figures.append(Figure(f"{way} (95 %: {low:.2f} to {high:.2f}), mean", statistics.fmean(saved), ""))
        figures.append(Figure(f"{way}, lower end", low, "", ">= 0"))
        low, high = of_mean(gains)
        end = f"novelty {name}: score after {attempts}, beyond that without (95 %: {low:.2f} to {high:.2f})"
        figures.append(Figure(end, statistics.fmean(gains), ""))
        figures.append(Figure(f"novelty {name}: changes not run", statistics.fmean(it.rejected for it in novel), ""))
    return figures
