"""One search of a family, on the interface that every proposer has: what it cost until the target was reached."""

import heapq
import math
import random
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.families.programs import Program
from benchmarks.families.simulated import Dice, Drawing, Place, thrown
from benchmarks.operators import Memory
from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.proposers import Brief, Exhausted, Proposer, Tried
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.table import ON_CODE

POLICY = Policy(editable=("f.py",))
_EVENLY = {name: it._replace(weight=1.0) for name, it in ON_CODE.items()}


@dataclass(frozen=True)
class Side:
    """A way to choose: blindly, as operators do by themselves, or by the meta loop. After `told_after` attempts, which
    know nothing, results are learnt as soon as an attempt begins, though it is built on only when it has ended.
    """

    name: str
    learnt: Learnt = field(default_factory=Learnt)
    adaptive: bool = True
    told_after: int | None = None


@dataclass(frozen=True)
class Made:
    """What an attempt came to: `state` is what children are built on."""

    state: Any
    score: float | None
    usd: float = 1.0


class World(Protocol):
    """A problem with one seed."""

    target: float
    ties: bool

    @property
    def root(self) -> Made: ...

    def proposer(self, side: Side) -> Proposer: ...

    def tree(self, state: Any) -> Tree: ...

    def made(self, state: Any, proposal: Proposal, number: int) -> Made: ...


class CodeWorld:
    ties = False

    def __init__(self, program: Program) -> None:
        self._program = program
        self.target = program.target

    @property
    def root(self) -> Made:
        return Made(Tree.of({"f.py": self._program.source}), self._program.score(self._program.source))

    def proposer(self, side: Side) -> Proposer:
        if side.adaptive:
            return Operators(POLICY)
        return Operators(POLICY, adaptive=False, on_code=_EVENLY)

    def tree(self, state: Any) -> Tree:
        found: Tree = state
        return found

    def made(self, state: Any, proposal: Proposal, number: int) -> Made:
        del number
        tree = apply_text(state, proposal.text or "", POLICY)
        return Made(tree, self._program.score(tree["f.py"].data.decode()))


class DiceWorld:
    def __init__(self, dice: Dice, seed: int) -> None:
        self._arms = dice.arms(seed)
        self._seed = f"{dice.name}/{seed}"
        self.target = -dice.target
        self.ties = dice.ties

    @property
    def root(self) -> Made:
        return Made(Place(), -1.0)

    def proposer(self, side: Side) -> Proposer:
        return Drawing(list(self._arms.chances), adaptive=side.adaptive)

    def tree(self, state: Any) -> Tree:
        del state
        return Tree()

    def made(self, state: Any, proposal: Proposal, number: int) -> Made:
        # Every arm has its own luck, so that it matters which is drawn even where all are alike.
        place, usd = thrown(
            self._arms, state, proposal.operator, random.Random(f"{self._seed}/{number}/{proposal.operator}")
        )
        return Made(place, -place.gap, usd)


@dataclass(order=True)
class _Open:
    at: float
    number: int
    node: str = field(compare=False)
    made: Made = field(compare=False)
    tried: Tried = field(compare=False)


async def cost_to_target(world: World, side: Side, seed: int, most: int, width: int) -> float:
    """Of attempts that ended by then; infinite where so many do not do. With more than one in flight they take unlike
    times, a few of them long, and end out of order.
    """
    search = _Search(world, side, seed, width)
    while search.number < most or search.open:
        while search.number < most and len(search.open) < width:
            if not await search.start():
                return math.inf
        if search.finish():
            return search.spent
    return math.inf


class _Search:
    def __init__(self, world: World, side: Side, seed: int, width: int) -> None:
        self._world, self._seed, self._width, self._told_after = world, seed, width, side.told_after
        self._proposer, self._meta = world.proposer(side), Meta(side.learnt)
        self._made: dict[str, Made] = {"1": world.root}
        self._past = Memory(world.tree(world.root.state))
        self._ended: list[Tried] = []
        self._best = "1"
        self._times = random.Random(f"times/{seed}")
        self._now = 0.0
        self.open: list[_Open] = []
        self.number = 0
        self.spent = 0.0

    async def start(self) -> bool:
        """False where there is nothing new to propose."""
        self.number += 1
        parent, past = self._best, self._past
        is_blind = self._told_after is not None and self.number <= self._told_after
        past.ended = [] if is_blind else self._ended
        tree = self._world.tree(self._made[parent].state)
        past.running = [it.tried for it in self.open] if self._told_after is None or is_blind else []
        chooser = self._meta.chooser(past.ended, self._seed, self.number, 0, past.running)
        node = f"{parent}.{self.number}"
        brief = Brief(node, parent, self.number, self._seed, tree, past=past, chooser=chooser)
        try:
            [proposal] = await self._proposer.propose(brief)
        except Exhausted:
            return False
        made = self._world.made(self._made[parent].state, proposal, self.number)
        past.trees[node] = self._world.tree(made.state)
        past.known.add(past.trees[node].digest)
        lasts = 1.0 if self._width == 1 else self._times.lognormvariate(0.0, 0.8)
        tried = _tried(brief, proposal, made, self._made[parent])
        heapq.heappush(self.open, _Open(self._now + lasts, self.number, node, made, tried))
        if self._told_after is not None:
            self._ended.append(tried)
        return True

    def finish(self) -> bool:
        """The next that ends; whether it reached the target."""
        ended = heapq.heappop(self.open)
        self._now, made, best = ended.at, ended.made, self._made[self._best].score
        self._made[ended.node] = made
        if self._told_after is None:
            self._ended.append(ended.tried)
        self.spent += made.usd
        if made.score is None:
            return False
        if best is None or made.score > best or (self._world.ties and made.score == best):
            self._best = ended.node
        return made.score >= self._world.target


def _tried(brief: Brief, proposal: Proposal, made: Made, parent: Made) -> Tried:
    merits, others = ((it.score,) if it.score is not None else None for it in (made, parent))
    return Tried(
        brief.node,
        brief.number,
        brief.parent,
        proposal.operator,
        proposal.description,
        None,
        merits,
        others,
        ending=Ending.SCORED if merits else Ending.FAILED,
        drawn=proposal.drawn,
        usd=made.usd,
    )
