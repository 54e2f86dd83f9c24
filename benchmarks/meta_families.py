"""What a search gains by learning how to search: cost to a target on families of problems, by pairs of the same seed.

Ratios are of what two sides need on the same problem and seed; a search that never arrives counts as one more than it
had. A family's ratio is the median over all of its pairs; its interval comes of resampling seeds. What is left of it
with many in flight is in `meta_in_flight`.
"""

import asyncio
import math
import os
import random
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from benchmarks.chance import interval
from benchmarks.families import programs
from benchmarks.families.programs import Program
from benchmarks.families.searching import CodeWorld, DiceWorld, Side, cost_to_target
from benchmarks.families.simulated import Dice
from benchmarks.figure import Figure
from orchestrator.meta.chooser import Learnt
from orchestrator.meta.credit import Crediting, Price
from orchestrator.meta.policy import Learning

SEEDS = 20
MOST = 200
WIDE = 16
TOLD = f"gradient, told at once after the first {WIDE}"
# Dice cost nothing: there are more seeds of them, and they may take longer.
_MORE_DICE, _MORE_TIME = 5, 3


@dataclass(frozen=True)
class Family:
    name: str
    problems: Sequence[Program | Dice]
    tuning: bool = False
    price: Price = Price.NONE

    @property
    def is_dice(self) -> bool:
        return isinstance(self.problems[0], Dice)

    @property
    def most(self) -> int:
        return MOST * _MORE_TIME if self.is_dice else MOST


FAMILIES = {
    it.name: it
    for it in (
        Family("small programs", programs.REAL),
        Family("scheduler", programs.TUNING, tuning=True),
        Family("circle packing by code", programs.PACKING),
        Family("expressions", programs.EXPRESSION, tuning=True),
        Family("models of unequal worth and price", [Dice("models", "models")], price=Price.USD),
        Family("regime that shifts", [Dice("shifts", "shifts")], tuning=True),
        Family("stepping stones", [Dice("stones", "stones", ties=True)]),
        Family("all alike", [Dice("alike", "alike")]),
    )
}
_ALIKE = "all alike"
# Families that the goals are about: where arms differ, and what is worth something shows at once.
GOALS = tuple(name for name in FAMILIES if name not in (_ALIKE, "stepping stones"))


def sides(price: Price) -> Mapping[str, Side]:
    def meta(learning: Learning, credit: Crediting) -> Side:
        return Side(f"{learning} by {credit}", Learnt(learning, credit, price))

    return {
        "uniform": Side("uniform", adaptive=False),
        "adaptive": Side("adaptive"),
        "lift": meta(Learning.LIFT, Crediting.LIFT),
        "lift, lineage": meta(Learning.LIFT, Crediting.LINEAGE),
        "gradient": meta(Learning.GRADIENT, Crediting.LIFT),
        "gradient, lineage": meta(Learning.GRADIENT, Crediting.LINEAGE),
        TOLD: replace(meta(Learning.GRADIENT, Crediting.LIFT), told_after=WIDE),
    }


@dataclass(frozen=True)
class Job:
    family: str
    side: str
    width: int
    seed: int


def _cost(job: Job) -> list[float]:
    """One number for each problem of the family."""
    family = FAMILIES[job.family]
    side = sides(family.price)[job.side]
    found = []
    for problem in family.problems:
        world = DiceWorld(problem, job.seed) if isinstance(problem, Dice) else CodeWorld(problem)
        cost = asyncio.run(cost_to_target(world, side, job.seed, family.most, job.width))
        found.append(cost if math.isfinite(cost) else float(family.most + 1))
    return found


Costs = Mapping[tuple[str, str, int], Sequence[Sequence[float]]]


def costs(seeds: int, names: Sequence[str], serial: Sequence[str], wide: Sequence[str] = ()) -> Costs:
    """By family, side and width: for each seed, what each problem took."""
    wanted = [(name, side, 1) for name in names for side in serial]
    wanted += [(name, side, WIDE) for name in names for side in wide]
    jobs = [
        Job(name, side, width, seed)
        for name, side, width in wanted
        for seed in range(seeds * (_MORE_DICE if FAMILIES[name].is_dice else 1))
    ]
    found: dict[tuple[str, str, int], list[Sequence[float]]] = {it: [] for it in wanted}
    with ProcessPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) - 1)) as pool:
        for job, cost in zip(jobs, pool.map(_cost, jobs, chunksize=1), strict=True):
            found[job.family, job.side, job.width].append(cost)
    return found


def logs(mine: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> list[list[float]]:
    """For each seed, the logarithms of mine beside theirs, problem by problem."""
    return [[math.log(a / b) for a, b in zip(one, other, strict=True)] for one, other in zip(mine, theirs, strict=True)]


def ratio(found: Sequence[Sequence[float]]) -> tuple[float, tuple[float, float]]:
    def middle(rows: Sequence[Sequence[float]]) -> float:
        return math.exp(statistics.median(it for row in rows for it in row))

    def again(rng: random.Random) -> float:
        return middle(rng.choices(found, k=len(found)))

    return middle(found), interval(again)


def over_families(ratios: Sequence[Sequence[Sequence[float]]]) -> tuple[float, tuple[float, float]]:
    """The median of the families' own, and its interval by resampling the seeds of each."""

    def middle(rng: random.Random | None) -> float:
        rows = [rng.choices(one, k=len(one)) if rng else one for one in ratios]
        return math.exp(statistics.median(statistics.median(it for row in one for it in row) for one in rows))

    return middle(None), interval(middle)


def figure(said: str, found: tuple[float, tuple[float, float]], goal: str = "") -> Figure:
    value, (low, high) = found
    return Figure(f"{said} (95 %: {low:.2f} to {high:.2f})", value, "", goal)


def figures(found: Costs, names: Sequence[str], serial: Sequence[str]) -> list[Figure]:
    rows: list[Figure] = []
    for name in names:
        rows += [middle(found, name, side, 1) for side in serial]
        for side in serial[1:]:
            alike = ">= 0.95" if name == _ALIKE and side == "gradient" else ""
            beside = logs(found[name, side, 1], found[name, "uniform", 1])
            if alike:
                beside = [[-it for it in row] for row in beside]
            said = f"{marked(name)}: {'uniform beside gradient' if alike else f'{side} beside uniform'}"
            rows.append(figure(said, ratio(beside), alike))
    return rows + _goals(found, [name for name in names if name in GOALS], serial)


def marked(name: str) -> str:
    return f"{name}{', used for tuning' if FAMILIES[name].tuning else ''}"


def middle(found: Costs, name: str, side: str, width: int) -> Figure:
    family, every = FAMILIES[name], [it for row in found[name, side, width] for it in row]
    unit = "$" if family.price is Price.USD else "attempts"
    never = sum(it > family.most for it in every) / len(every)
    flying = f" with {width} in flight" if width > 1 else ""
    said = f"{marked(name)}: {side}, median {unit} to the target{flying}; {never:.0%} never get there"
    return Figure(said, statistics.median(every), "")


def _goals(found: Costs, names: Sequence[str], serial: Sequence[str]) -> list[Figure]:
    if not names or "gradient" not in serial:
        return []
    held = [name for name in names if not FAMILIES[name].tuning]
    rows = []
    for other, goal in (("uniform", "<= 0.5"), ("adaptive", "<= 0.8"), ("lift", "")):
        if other in serial:
            beside = {name: logs(found[name, "gradient", 1], found[name, other, 1]) for name in names}
            said = f"gradient beside {other}, median over {len(names)} families"
            rows.append(figure(said, over_families(list(beside.values())), goal))
            if held:
                kept = [beside[name] for name in held]
                rows.append(figure(f"the same over the {len(held)} that were held back", over_families(kept)))
    return rows


async def measure(seeds: int = SEEDS) -> list[Figure]:
    names, serial = list(FAMILIES), [side for side in sides(Price.NONE) if side != TOLD]
    return figures(costs(seeds, names, serial), names, serial)
