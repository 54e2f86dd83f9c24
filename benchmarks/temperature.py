"""What a search gains by learning a temperature, with models that are made up: of unequal worth, and each answers well
around one temperature. A seed is one whole search with its own models; it ends with a said number of improvements.

No constant was chosen by these figures. `own`: every model has its best temperature, while the search has one knob for
all.
"""

import math
import random
import statistics
from collections.abc import Sequence

from benchmarks.chance import interval, resampled
from benchmarks.figure import Figure
from orchestrator.domain.ending import Ending
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Tried

SEEDS = 40
LEAST, MOST = 0.1, 1.6
MIDDLE = math.sqrt(LEAST * MOST)
WIDTH = 0.7  # of what is good around the best, in logarithms
WANTED, CAP = 12, 800
FAMILIES = ("cold", "hot", "own")


class Models:
    """Four of them: how often each makes something better, at its best temperature."""

    def __init__(self, family: str, seed: int) -> None:
        rng = random.Random(f"temperature/{family}/{seed}")
        self.worth = {f"model {number}": rng.uniform(0.05, 0.35) for number in range(4)}
        edge = {"cold": (LEAST, 0.2), "hot": (0.8, MOST)}.get(family, (LEAST, MOST))
        one = rng.uniform(*map(math.log, edge))
        self.best = {name: rng.uniform(*map(math.log, edge)) if family == "own" else one for name in self.worth}

    def chance(self, model: str, temperature: float) -> float:
        away = (math.log(temperature) - self.best[model]) / WIDTH
        return self.worth[model] * math.exp(-away * away / 2)


def attempts(family: str, side: str, seed: int) -> int:
    """How many it takes. The model is learnt on every side; the temperature where the side is `learnt`."""
    models, meta = Models(family, seed), Meta(Learnt(Learning.GRADIENT))
    dice, ended, parent, found = random.Random(f"{family}/{seed}"), list[Tried](), "1", 0
    for number in range(1, CAP + 1):
        chooser = meta.chooser(ended, seed, number, 0)
        model = chooser.choose("model", dict.fromkeys(models.worth, 1.0)) or ""
        match side:
            case "learnt":
                warm = chooser.knob("temperature", MIDDLE, LEAST, MOST)
            case "drawn":
                warm = math.exp(dice.uniform(math.log(LEAST), math.log(MOST)))
            case "told":
                warm = math.exp(models.best[model])
            case _:
                warm = MIDDLE
        gain = math.exp(-0.2 * found) if dice.random() < models.chance(model, warm) else -1.0
        node = f"{parent[-8:]}.{number}"
        ended.append(
            Tried(node, number, parent, model, "", None, (gain,), (0.0,), ending=Ending.SCORED, drawn=chooser.drawn)
        )
        if gain > 0:
            parent, found = node, found + 1
        if found == WANTED:
            return number
    return CAP


def _ratio(name: str, ours: Sequence[float], others: Sequence[float]) -> Figure:
    def of(pairs: Sequence[tuple[float, float]]) -> float:
        return math.exp(statistics.fmean(math.log(one / other) for one, other in pairs))

    pairs = list(zip(ours, others, strict=True))
    low, high = interval(lambda rng: of(resampled(pairs, rng)))
    return Figure(f"{name}, mean ratio of {len(pairs)} pairs (95 %: {low:.2f} to {high:.2f})", of(pairs), "")


async def measure(seeds: int = SEEDS) -> list[Figure]:
    figures = []
    for family in FAMILIES:
        took = {
            side: [attempts(family, side, seed) for seed in range(seeds)]
            for side in ("learnt", "middle", "drawn", "told")
        }
        told = f"temperature, {family}"
        figures.append(Figure(f"{told}: learnt, median attempts to the target", statistics.median(took["learnt"]), ""))
        others = ("middle", "drawn", "told")
        figures += [_ratio(f"{told}: learnt beside {it}", took["learnt"], took[it]) for it in others]
    return figures
