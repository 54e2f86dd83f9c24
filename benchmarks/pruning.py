"""What each pruning rule saves, and whom it ends, on learning curves that cross: fast starters that level off early,
slow ones that end higher. No containers; every rule sees the same trials in the same order, one after the other.
"""

import math
import random
import statistics
from collections.abc import Callable

from benchmarks.chance import wilson
from benchmarks.figure import Figure
from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Curve, Point
from orchestrator.pruning import Crowd, Peer, Rule, Watch
from orchestrator.pruning.extrapolation import Extrapolation
from orchestrator.pruning.optunas import Halving, Median
from orchestrator.pruning.wilcoxon import Wilcoxon

SEEDS = 40
TRIALS = 100
STEPS = 40
NOISE = 0.01
WARMUP = 4
STARTUP = 5

RULES: dict[str, tuple[Callable[[], Rule], int]] = {
    "median": (lambda: Median(Goal.HIGHER, STARTUP), WARMUP),
    "halving": (lambda: Halving(Goal.HIGHER, STARTUP, 4, WARMUP), 0),
    "wilcoxon": (lambda: Wilcoxon(Goal.HIGHER, STARTUP, 0.1), WARMUP),
    "curve": (lambda: Extrapolation(Goal.HIGHER, STARTUP, 0.05), WARMUP),
}


def curve(draw: random.Random) -> list[float]:
    """Who ends higher tends to start slower. Two of the three shapes are none that the extrapolation fits."""
    end = draw.betavariate(4, 2)
    start = draw.uniform(0, 0.3)
    speed = math.exp(draw.gauss(-0.5 - 1.5 * end, 0.6))
    bend = draw.uniform(0.5, 1.2)
    shape: Callable[[float], float] = draw.choice(
        [
            lambda t: math.exp(-((speed * t) ** bend)),
            lambda t: (1 + speed * t) ** -1.5,
            lambda t: 1 / (1 + (speed * t / 2) ** (1 + bend)),
        ]
    )
    return [end - (end - start) * shape(step) + draw.gauss(0, NOISE) for step in range(1, STEPS + 1)]


BASELINE = curve(random.Random("baseline"))


def played(rule: Rule, warmup: int, curves: list[list[float]]) -> tuple[float, bool, float]:
    """The share of steps saved, whether the best of all was ended, and how much worse the best is that was left."""
    crowd = Crowd()
    baseline = Peer("baseline", tuple(enumerate(BASELINE)), BASELINE[-1])
    steps = 0
    left: list[int] = []
    for number, values in enumerate(curves):
        heard = Curve()
        watch = Watch(rule, lambda: crowd.peers(baseline), warmup=warmup)
        ran: list[Point] = []
        for step, value in enumerate(values):
            ran.append((step, value))
            if heard.add(step, value) and watch.enough(heard):
                break
        steps += len(ran)
        if watch.look.cut:
            crowd.pruned(str(number), ran)
        else:
            crowd.scored(str(number), ran, values[-1])
            left.append(number)
    best = max(range(len(curves)), key=lambda number: curves[number][-1])
    lost = curves[best][-1] - max(curves[number][-1] for number in left)
    return 1 - steps / (TRIALS * STEPS), best not in left, lost


async def measure() -> list[Figure]:
    found: list[Figure] = []
    campaigns = [[curve(draw) for _ in range(TRIALS)] for draw in map(random.Random, range(SEEDS))]
    for name, (make, warmup) in RULES.items():
        saved, killed, lost = zip(*(played(make(), warmup, curves) for curves in campaigns), strict=True)
        found += [
            Figure(f"{name}: work saved, {SEEDS} campaigns of {TRIALS} trials", *_mean([100 * it for it in saved])),
            Figure(f"{name}: campaigns whose winner was ended", *_share(sum(killed), len(killed))),
            Figure(f"{name}: score lost by that", *_mean([100 * it for it in lost])),
        ]
    return found


def _mean(values: list[float]) -> tuple[float, str]:
    """With its 95 % interval."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return mean, f"% (95 %: {mean - half:.2g} to {mean + half:.2g})"


def _share(count: int, of: int) -> tuple[float, str]:
    low, high = wilson(count, of)
    return 100 * count / of, f"% (95 %: {100 * low:.2g} to {100 * high:.2g})"
