"""Where islands and other parents help: whole searches by the loop's own choice of parents, on landscapes that cost
nothing to measure.

After a look at the first six, tournaments were confined to the best nodes, and tasks were put together in the archive's
grid. Nothing was tuned on the last three.
"""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.chance import of_mean
from benchmarks.figure import Figure
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding import fold
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.node import child_of
from orchestrator.domain.records import Phase, Role
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.loop.openings import next_opening
from orchestrator.loop.selection import Population
from orchestrator.population import Member, ParentContext, ParentRule
from orchestrator.population.archive import Archive
from orchestrator.population.rules import Best, Novelty, Tournament

_AT = "2025-01-01T00:00:00.000000+00:00"
_COHORT = "c"
_DEPTH = 5
_RANKING = Ranking([Metric()])
Genes = tuple[float, ...]


@dataclass(frozen=True)
class Landscape:
    """`score` is 1 at best; `tasks` are parts of it, where it has any. Bits are flipped, other numbers are moved."""

    name: str
    deceptive: bool
    start: Callable[[random.Random], Genes]
    tasks: Callable[[Genes], dict[str, float]]
    bits: bool = True

    def score(self, genes: Genes) -> float:
        return statistics.fmean(self.tasks(genes).values())

    def changed(self, genes: Genes, rng: random.Random) -> Genes:
        if self.bits:
            flipped = set(rng.sample(range(len(genes)), rng.choice((1, 1, 2, 3))))
            return tuple(1 - it if at in flipped else it for at, it in enumerate(genes))
        step = 0.5 * 10 ** rng.uniform(-2, 0.5)
        return tuple(it + rng.gauss(0, step) if rng.random() < 0.5 else it for it in genes)


def _bits(count: int) -> Callable[[random.Random], Genes]:
    return lambda rng: tuple(float(rng.random() < 0.5) for _ in range(count))


def _reals(count: int) -> Callable[[random.Random], Genes]:
    return lambda rng: tuple(rng.uniform(-4, 4) for _ in range(count))


def _blocks(genes: Genes, size: int) -> list[float]:
    return [sum(genes[at : at + size]) for at in range(0, len(genes), size)]


def _ones(genes: Genes) -> dict[str, float]:
    return {str(at): ones / 10 for at, ones in enumerate(_blocks(genes, 10))}


def _traps(genes: Genes) -> dict[str, float]:
    """Every block of four leads away from its best."""
    return {str(at): 1.0 if ones == 4 else 0.2 * (3 - ones) for at, ones in enumerate(_blocks(genes, 4))}


def _two_hills(genes: Genes) -> dict[str, float]:
    """Few or many ones: the way to the lower hill is as wide as that to the higher one."""
    share = sum(genes) / len(genes)
    return {"hills": max(share, 0.7 * (1 - share)) if share > 0.5 else 0.7 * (1 - share)}


@cache
def _table(at: int, key: tuple[float, ...]) -> float:
    return random.Random(f"nk/{at}/{key}").random()


def _tangled(genes: Genes) -> dict[str, float]:
    """Kauffman's NK: what a bit is worth depends on five others."""
    size = len(genes)
    return {str(at): _table(at, tuple(genes[(at + k) % size] for k in range(6))) for at in range(size)}


def _sphere(genes: Genes) -> dict[str, float]:
    return {str(at): math.exp(-((it - 1.0) ** 2) / 4) for at, it in enumerate(genes)}


def _rastrigin(genes: Genes) -> dict[str, float]:
    """A bowl full of dents."""

    def part(away: float) -> float:
        return 1 / (1 + (away**2 + 5 * (1 - math.cos(2 * math.pi * away))) / 5)

    return {str(at): part(it - 1) for at, it in enumerate(genes)}


def _ackley(genes: Genes) -> dict[str, float]:
    """Ripples on a plain, with a hole in the middle."""
    away = math.sqrt(sum((it - 1) ** 2 for it in genes) / len(genes))
    ripples = statistics.fmean(math.cos(2 * math.pi * (it - 1)) for it in genes)
    return {"depth": 1 - (20 - 20 * math.exp(-0.2 * away) + math.e - math.exp(ripples)) / 23}


def _stairs(genes: Genes) -> dict[str, float]:
    """Only whole blocks of three count: most steps change nothing."""
    return {str(at): float(ones == 3) for at, ones in enumerate(_blocks(genes, 3))}


def _slope(genes: Genes) -> dict[str, float]:
    """A number in binary: the first bits are worth the most."""
    return {"number": sum(it / 2 ** (at + 1) for at, it in enumerate(genes))}


LANDSCAPES = (
    Landscape("ones", False, _bits(60), _ones),
    Landscape("sphere", False, _reals(6), _sphere, bits=False),
    Landscape("traps", True, _bits(32), _traps),
    Landscape("two hills", True, _bits(30), _two_hills),
    Landscape("tangled (NK)", True, _bits(30), _tangled),
    Landscape("rastrigin", True, _reals(4), _rastrigin, bits=False),
    Landscape("slope", False, _bits(24), _slope),
    Landscape("stairs", True, _bits(30), _stairs),
    Landscape("ackley", True, _reals(4), _ackley, bits=False),
)


@dataclass(frozen=True)
class Arm:
    name: str
    make: Callable[[Member | None], ParentRule]
    islands: int = 1


ARMS = (
    Arm("champion", lambda _: Best()),
    Arm("champion, 4 islands", lambda _: Best(), 4),
    Arm("tournament", lambda _: Tournament()),
    Arm("tournament, 4 islands", lambda _: Tournament(), 4),
    Arm("novelty", lambda _: Novelty()),
    Arm("archive", lambda baseline: Archive(ParentContext(baseline=baseline))),
)


class Search:
    """A campaign's state with nodes that are measured as soon as they are opened."""

    def __init__(self, landscape: Landscape, arm: Arm, seed: int, migrate: int = 25) -> None:
        self._landscape = landscape
        self._rng = random.Random(f"{landscape.name}/{seed}")
        self.state = State()
        self._tell(e.CampaignOpened(campaign="c", name="c", version="0"))
        self._tell(
            e.RunStarted(
                run=1,
                task="t",
                digests={},
                seed=seed,
                proposer="p",
                control=None,
                width=1,
                depth=_DEPTH,
                why="",
                options="{}",
                lower_tier=False,
                before={},
                islands=arm.islands,
                migrate=migrate,
            )
        )
        self._tell(e.CohortOpened(run=1, cohort=_COHORT, why=""))
        self.genes = {"1": landscape.start(self._rng)}
        self.best = -math.inf
        self._tell(e.AttemptOpened(node="1", parent=None, role=Role.BASELINE, number=1))
        self._measure("1")
        self._population = Population(self.state, _RANKING, arm.make)

    def _tell(self, event: e.Event) -> None:
        fold(self.state, event, _AT)

    def run(self, attempts: int) -> float:
        run = self.state.run
        for number in range(1, attempts + 1):
            if run.islands > 1 and number - 1 - self.state.run.migrated >= run.migrate:
                moved = e.Migrated(run=1, after=number - 1, moves=self._population.moves())
                self._tell(moved)
                self._population.on_event(moved, _AT)
            opening = next_opening(self.state, _RANKING, branching=True, width=1, selection=self._population)
            if opening is None:
                raise AssertionError("nothing is at work, so there is room")
            name = child_of(opening.parent, self.state.next_child(opening.parent))
            self.genes[name] = self._landscape.changed(self.genes[opening.parent], self._rng)
            self._tell(
                e.AttemptOpened(
                    node=name,
                    parent=opening.parent,
                    role=Role.SEARCH,
                    number=number,
                    branch=opening.branch,
                    step=opening.step,
                    island=opening.island,
                )
            )
            self._measure(name)
            self._population.on_event(e.AttemptEnded(node=name, ending=Ending.SCORED), _AT)
        return self.best

    def _measure(self, name: str) -> None:
        tasks = self._landscape.tasks(self.genes[name])
        score = statistics.fmean(tasks.values())
        verdict = Verdict(metrics={"score": score}, tasks=tasks, tier=Tier.DATA, mode=Mode.SUBMIT, cohort=_COHORT)
        self.state.set_node(name, phase=Phase.ENDED, ending=Ending.SCORED, verdict=verdict, verdicts={_COHORT: verdict})
        if score > self.best:
            self.best = score
            self.state.set_run(1, champions={_COHORT: name})


def measure(seeds: int, attempts: int = 400) -> list[Figure]:
    figures = []
    for landscape in LANDSCAPES:
        found = {arm.name: [Search(landscape, arm, seed).run(attempts) for seed in range(seeds)] for arm in ARMS}
        kind = "deceptive" if landscape.deceptive else "smooth"
        plain = found["champion"]
        said = f"{landscape.name} ({kind}), score after {attempts}: champion{_interval(plain)}"
        figures.append(Figure(said, statistics.fmean(plain), ""))
        for name, scores in found.items():
            if name != "champion":
                gains = [mine - its for mine, its in zip(scores, plain, strict=True)]
                said = f"{landscape.name}: {name} beyond champion{_interval(gains)}"
                figures.append(Figure(said, statistics.fmean(gains), ""))
    return figures


def _interval(values: Sequence[float]) -> str:
    low, high = of_mean(values)
    return f" (95 %: {low:.3f} to {high:.3f})"
