"""How well operators search: on small files whose score needs no interpreter, against others that choose blindly.

Each file needs something else: numbers, signs, an edge, an order of statements. A seed is one whole search.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.chance import of_mean
from benchmarks.expressions import Function, Unknown
from benchmarks.figure import Figure
from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.proposal import Proposal
from orchestrator.meta.chooser import Meta
from orchestrator.proposers import Brief, Exhausted, Tried
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.table import ON_CODE, ON_LINES

POLICY = Policy(editable=("f.py",))
# What stands beside the function in question. Most code of a program has nothing to do with its score.
BESIDE = """

def scaled(values, low=0.0, high=1.0):
    span = max(values) - min(values)
    if span == 0.0:
        return [low for _ in values]
    return [low + (value - min(values)) * (high - low) / span for value in values]


def smoothed(values, share=0.25):
    kept = values[0]
    smooth = []
    for value in values:
        kept = share * value + (1.0 - share) * kept
        smooth.append(kept)
    return smooth


def table(rows, width=12):
    lines = []
    for row in rows:
        if len(row) > 8 or not row:
            continue
        lines.append(" ".join(str(cell)[:width] for cell in row))
    return lines
"""
POINTS = [(x / 4 - 1.0, y / 4 - 0.5) for x in range(9) for y in range(7)]


@dataclass(frozen=True)
class Problem:
    """`source` shall become `wanted`; the score is the share of the error that is gone, 1 at best."""

    name: str
    source: str
    wanted: Callable[[float, float], float]

    def error(self, source: str) -> float | None:
        try:
            function = Function(source)
            return sum(abs(function(x, y) - self.wanted(x, y)) for x, y in POINTS) / len(POINTS)
        except Unknown:
            return None

    def score(self, source: str) -> float | None:
        error, first = self.error(source), self.error(self.source)
        return None if error is None or not first else 1.0 - error / first


def _ordered(x: float, y: float) -> float:
    return ((x + 1.5) * (x + 1.5) - y) * 0.5


PROBLEMS = (
    Problem(
        "numbers",
        "A = 1.0\nB = 1.0\nC = 1.0\nD = 1.0\n\n\ndef f(x, y):\n    return A * x + B * y + C * x * y + D\n",
        lambda x, y: 3.7 * x + 0.42 * y + 0.05 * x * y + 12.5,
    ),
    Problem(
        "signs",
        "def f(x, y):\n    a = x + y\n    b = x - y\n    return a + b + 0.5\n",
        lambda x, y: (x - y) * (x + y) - 2.0,
    ),
    Problem(
        "edges",
        "def f(x, y):\n    if x > 0.0 and y < 0.0:\n        return 1.0\n    return 2.0 if x < y else 0.0\n",
        lambda x, y: 1.0 if x > 0.25 or y < 0.0 else 3.0 if x >= y else 0.0,
    ),
    Problem(
        "order",
        "def f(x, y):\n    x = x * x\n    x = x + 1.0\n    x += y\n    x = x * 0.5\n    return x\n",
        _ordered,
    ),
)


class Memory:
    """The past of one search."""

    def __init__(self, root: Tree) -> None:
        self.ended: list[Tried] = []
        self.running: list[Tried] = []
        self.trees = {"1": root}
        self.known = {root.digest}

    def knows(self, digest: str) -> bool:
        return digest in self.known

    def tree(self, node: str) -> Tree:
        return self.trees[node]


async def search(proposer: Operators, problem: Problem, attempts: int, seed: int) -> float:
    """The best score after so many attempts, each built on the best so far."""
    root = Tree.of({"f.py": problem.source + BESIDE})
    past, meta = Memory(root), Meta()
    scores: dict[str, float | None] = {"1": 0.0}
    best = "1"
    for number in range(1, attempts + 1):
        chooser = meta.chooser(past.ended, seed, number, 0)
        brief = Brief(f"{best}.{number}", best, number, seed, past.trees[best], past=past, chooser=chooser)
        try:
            [proposal] = await proposer.propose(brief)
        except Exhausted:
            break
        tree = apply_text(brief.tree, proposal.text or "", POLICY)
        score = problem.score(tree["f.py"].data.decode())
        past.trees[brief.node], scores[brief.node] = tree, score
        past.known.add(tree.digest)
        past.ended.append(_tried(brief, proposal, score, scores[best]))
        if score is not None and score > (scores[best] or 0.0):
            best = brief.node
    return scores[best] or 0.0


def _tried(brief: Brief, proposal: Proposal, score: float | None, before: float | None) -> Tried:
    merits, others = ((value,) if value is not None else None for value in (score, before))
    return Tried(brief.node, brief.number, brief.parent, proposal.operator, proposal.description, None, merits, others)


def _arms() -> Mapping[str, Callable[[], Operators]]:
    """Every search has a proposer of its own."""
    evenly = {name: it._replace(weight=1.0) for name, it in ON_CODE.items()}
    return {
        "adaptive": lambda: Operators(POLICY),
        "blind": lambda: Operators(POLICY, adaptive=False, on_code=evenly),
        "lines": lambda: Operators(POLICY, on_code={}, on_lines=ON_LINES),
    }


async def measure(seeds: int = 20, attempts: int = 150) -> list[Figure]:
    figures: list[Figure] = []
    gains: list[float] = []
    for problem in PROBLEMS:
        found = {
            name: [await search(make(), problem, attempts, seed) for seed in range(seeds)]
            for name, make in _arms().items()
        }
        for name, scores in found.items():
            low, high = of_mean(scores)
            said = f"operators on {problem.name}: error gone after {attempts}, {name} (95 %: {low:.2f} to {high:.2f})"
            figures.append(Figure(said, statistics.fmean(scores), ""))
        gains += [mine - its for mine, its in zip(found["adaptive"], found["blind"], strict=True)]
    low, high = of_mean(gains)
    said = f"adaptive beyond blind, all {len(gains)} searches (95 %: {low:.3f} to {high:.3f}): lower end"
    return [*figures, Figure(said, low, "", ">= 0")]
