"""What the meta loop costs and what it brings, where arms are made up: of unequal worth, of unequal price, and in a
regime that shifts. A seed is one whole search; it ends with a said number of improvements.

`few`, `one`, `rare`, `graded` and `shift` are like those that the constants were tuned on, with other seeds. Nobody
tuned on those where a gain needs a stepping stone, and where arms have prices.
Arms that are alike, and results that come late, are in `families`.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.chance import interval, resampled
from benchmarks.figure import Figure
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Drawn
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.credit import Crediting, Price
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Tried

ARMS = tuple(f"arm {number}" for number in range(14))
PRIOR: Mapping[str, float] = dict.fromkeys(ARMS, 1.0)
CAP = 600


@dataclass(frozen=True)
class Family:
    """`good` arms improve with about the chance `often`, all others with less than `seldom`; `shifts` times other arms
    become the good ones. `wanted` improvements end a search.
    """

    name: str
    good: int
    often: float
    seldom: float
    wanted: int
    shifts: int = 0


TUNED = (
    Family("few", 2, 0.3, 0.02, 12),
    Family("one", 1, 0.25, 0.01, 8),
    Family("rare", 2, 0.08, 0.005, 5),
    Family("graded", 7, 0.12, 0.02, 12),
    Family("shift", 2, 0.3, 0.01, 24, shifts=2),
)


class World:
    """The chances of one search. What an arm does without an improvement is its own, too."""

    def __init__(self, family: Family, seed: int) -> None:
        made = random.Random(f"{family.name}/{seed}")
        self._family = family
        self._dice = random.Random(f"dice of {family.name}/{seed}")
        self._fails = {arm: (made.uniform(0.0, 0.5), made.uniform(0.1, 0.6)) for arm in ARMS}
        self._chances = [self._drawn(made) for _ in range(family.shifts + 1)]
        if not family.good:
            self._fails = dict.fromkeys(ARMS, (0.2, 0.3))
            self._chances = [dict.fromkeys(ARMS, family.seldom / 2)]

    def _drawn(self, made: random.Random) -> dict[str, float]:
        chances = {arm: self._family.seldom * made.random() for arm in ARMS}
        good = made.sample(ARMS, self._family.good)
        return chances | {arm: self._family.often * made.uniform(0.6, 1.4) for arm in good}

    def chances(self, found: int) -> Mapping[str, float]:
        return self._chances[min(len(self._chances) - 1, found * len(self._chances) // self._family.wanted)]

    def gain(self, arm: str, found: int) -> float | None:
        """None for what breaks, else how much better or worse it is; late gains are smaller."""
        chances = self.chances(found)
        if self._dice.random() < chances[arm]:
            return math.exp(-0.2 * found + self._dice.gauss(0.0, 1.0))
        broken, same = self._fails[arm]
        if self._dice.random() < broken:
            return None
        return 0.0 if self._dice.random() < same else -1.0


Pick = Callable[[Sequence[Tried], int], tuple[str, Drawn | None]]


def evenly(seed: int) -> Pick:
    dice = random.Random(f"evenly/{seed}")
    return lambda _ended, _number: (dice.choice(ARMS), None)


def today(seed: int) -> Pick:
    """What each arm brought lately, which is all that counts without the meta loop."""
    dice, meta = random.Random(f"today/{seed}"), Meta()

    def pick(ended: Sequence[Tried], number: int) -> tuple[str, Drawn | None]:
        chooser = meta.chooser(ended, seed, number, 0)
        return chooser.choose("operator", PRIOR, dice, lately=True) or "", None

    return pick


def learning(learnt: Learnt) -> Callable[[int], Pick]:
    def make(seed: int) -> Pick:
        meta = Meta(learnt)

        def pick(ended: Sequence[Tried], number: int) -> tuple[str, Drawn | None]:
            chooser = meta.chooser(ended, seed, number, 0)
            return chooser.choose("operator", PRIOR) or "", chooser.drawn

        return pick

    return make


GRADIENT = learning(Learnt(Learning.GRADIENT))
LIFT = learning(Learnt(Learning.LIFT))
LINEAGE = learning(Learnt(Learning.GRADIENT, Crediting.LINEAGE))


def searched(family: Family, make: Callable[[int], Pick], seed: int) -> int:
    """How many attempts it takes."""
    world, pick = World(family, seed), make(seed)
    ended: list[Tried] = []
    parent, found = "1", 0
    for number in range(1, CAP + 1):
        arm, drawn = pick(ended, number)
        gain = world.gain(arm, found)
        ended.append(_tried(parent, number, arm, gain, drawn))
        if gain is not None and gain > 0:
            found, parent = found + 1, ended[-1].node
        if found == family.wanted:
            return number
    return CAP


def told(family: Family, seed: int, arms: int) -> int:
    """How many it takes one who knows the best arms beforehand, and draws one of so many evenly."""
    world, dice, found = World(family, seed), random.Random(f"told/{seed}"), 0
    for number in range(1, CAP + 1):
        chances = world.chances(found)
        gain = world.gain(dice.choice(sorted(chances, key=chances.__getitem__)[-arms:]), found)
        found += gain is not None and gain > 0
        if found == family.wanted:
            return number
    return CAP


def _tried(parent: str, number: int, arm: str, gain: float | None, drawn: Drawn | None) -> Tried:
    return Tried(
        node=f"{parent[-8:]}.{number}",
        number=number,
        parent=parent,
        operator=arm,
        description="changed in line 1 of f.py",
        params=None,
        merits=None if gain is None else (gain,),
        parent_merits=(0.0,),
        ending=Ending.FAILED if gain is None else Ending.SCORED,
        drawn=drawn,
    )


async def measure(seeds: int = 40) -> list[Figure]:
    figures = [*_cost()]
    ratios: dict[str, list[float]] = {"evenly": [], "today": []}
    for family in TUNED:
        attempts = {
            name: [searched(family, make, seed) for seed in range(seeds)]
            for name, make in (("evenly", evenly), ("today", today), ("lift", LIFT), ("gradient", GRADIENT))
        }
        for other, found in ratios.items():
            figures += [
                _ratio(f"arms {family.name}: {name} beside {other}", attempts[name], attempts[other], "")
                for name in ("lift", "gradient")
            ]
            found.append(figures[-1].value)
        for arms, who in {1: "the best arm", family.good: "the good arms"}.items():
            best = [told(family, seed, arms) for seed in range(seeds)]
            figures.append(_ratio(f"arms {family.name}: told {who} beside evenly", best, attempts["evenly"], ""))
    for (other, found), goal in zip(ratios.items(), ("<= 0.5", "<= 0.8"), strict=True):
        said = f"gradient beside {other}, median over {len(found)} families of arms"
        figures.append(Figure(said, statistics.median(found), "", goal))
    return figures + _stones(seeds) + _paid(seeds)


def _stones(seeds: int) -> list[Figure]:
    """Some arms make a change that brings nothing, on which alone others can improve; in `few`, no gain needs one."""
    stones = {
        name: [_with_stones(make, seed) for seed in range(seeds)]
        for name, make in (("evenly", evenly), ("lift", GRADIENT), ("lineage", LINEAGE))
    }
    few = {
        name: [searched(TUNED[0], it, seed) for seed in range(seeds)]
        for name, it in (("lift", GRADIENT), ("lineage", LINEAGE))
    }
    return [
        _ratio("stepping stones: lineage beside lift", stones["lineage"], stones["lift"], "<= 0.9"),
        _ratio("stepping stones: lineage beside evenly", stones["lineage"], stones["evenly"], ""),
        _ratio("arms few: lineage beside lift", few["lineage"], few["lift"], ""),
    ]


def _with_stones(make: Callable[[int], Pick], seed: int, wanted: int = 10) -> int:
    """A gain needs two steps: one of a stone's arms, then one of the arms that can use it; other changes are worse."""
    dice, pick = random.Random(f"stones/{seed}"), make(seed)
    one, two, *_ = dice.sample(ARMS, 4)
    ended: list[Tried] = []
    parent, on_stone, found = "1", False, 0
    for number in range(1, CAP + 1):
        arm, drawn = pick(ended, number)
        lucky = dice.random() < 0.5
        gain = 0.0 if arm == one and lucky else math.exp(-0.2 * found) if arm == two and on_stone and lucky else -1.0
        ended.append(_tried(parent, number, arm, gain, drawn))
        if gain >= 0:
            parent, on_stone = ended[-1].node, gain == 0.0
            found += gain > 0
        if found == wanted:
            return number
    return CAP


def _paid(seeds: int) -> list[Figure]:
    """Dollars to target: two models are three times as good and thirty times as dear as four; the rest is poor."""
    priced = learning(Learnt(Learning.GRADIENT, price=Price.USD))
    spent = {
        name: [_dollars(make, seed) for seed in range(seeds)]
        for name, make in (("evenly", evenly), ("without a price", GRADIENT), ("by price", priced))
    }
    return [
        _ratio(f"dollars to target: by price beside {other}", spent["by price"], spent[other], "")
        for other in ("evenly", "without a price")
    ]


def _dollars(make: Callable[[int], Pick], seed: int, wanted: int = 12) -> float:
    dice, pick = random.Random(f"paid/{seed}"), make(seed)
    dear = dict.fromkeys(ARMS[:2], (0.3, 0.3))
    cheap = dict.fromkeys(ARMS[2:6], (0.1, 0.01))
    arms = dict.fromkeys(ARMS, (0.01, 0.1)) | dear | cheap
    ended: list[Tried] = []
    parent, found, spent = "1", 0, 0.0
    for number in range(1, CAP + 1):
        arm, drawn = pick(ended, number)
        chance, usd = arms[arm]
        gain = math.exp(-0.2 * found + dice.gauss(0.0, 1.0)) if dice.random() < chance else -1.0
        ended.append(replace(_tried(parent, number, arm, gain, drawn), usd=usd))
        spent += usd
        if gain > 0:
            parent, found = ended[-1].node, found + 1
        if found == wanted:
            return spent
    return spent


def _ratio(name: str, ours: Sequence[float], others: Sequence[float], goal: str) -> Figure:
    """Of the medians, with an interval by resampling."""

    def of(one: Sequence[float], other: Sequence[float]) -> float:
        return statistics.median(one) / statistics.median(other)

    low, high = interval(lambda rng: of(resampled(ours, rng), resampled(others, rng)))
    said = f"{name}, ratio of medians, {len(ours)} seeds (95 %: {low:.2f} to {high:.2f})"
    return Figure(said, of(ours, others), "", goal)


def _cost() -> list[Figure]:
    """Processor time of one draw and of what one more result teaches, after few attempts and after many."""
    figures = []
    for credit in Crediting:
        meta = Meta(Learnt(Learning.GRADIENT, credit, Price.USD))
        world, ended, parent = World(TUNED[0], 0), list[Tried](), "1"
        marks: dict[int, float] = {}
        began = time.process_time()
        for number in range(1, 10_001):
            chooser = meta.chooser(ended, 1, number, 0)
            arm = chooser.choose("operator", PRIOR) or ""
            chooser.knob("step", 0.3, 1e-4, 2.0)
            gain = world.gain(arm, number // 1000)
            ended.append(_tried(parent, number, arm, gain, chooser.drawn))
            if gain is not None and gain > 0:
                parent = ended[-1].node
            if number in (500, 1_000, 9_500, 10_000):
                marks[number] = time.process_time() - began
        first, last = (marks[1_000] - marks[500]) / 500, (marks[10_000] - marks[9_500]) / 500
        figures.append(Figure(f"meta step, {credit}: processor, up to 1,000 attempts", 1000 * first, "ms", "<= 1"))
        figures.append(Figure(f"meta step, {credit}: processor, up to 10,000 attempts", 1000 * last, "ms", "<= 1"))
    return figures
