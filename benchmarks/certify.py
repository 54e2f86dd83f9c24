"""How often a campaign under noise keeps what is no improvement, and how often it finds what is one. No chambers.

Everything is decided by `orchestrator.domain.certify`, as in the loop; only the measurements are drawn.
"""

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks.chance import wilson
from benchmarks.figure import Figure
from orchestrator.domain.certify import Certify, CertifyRule, Stand, Standing, look, median

CANDIDATES = 500
NOISY = Certify(rule=CertifyRule.NOISY, repeats=20, champion=20)
Noise = Callable[[random.Random, int], float]


def _student(chance: random.Random, _: int) -> float:
    """Two degrees of freedom: a variance that is infinite."""
    return chance.gauss(0, 1) / math.sqrt(chance.expovariate(1.0))


# What is added to a score at the so-manieth measurement.
NOISES: dict[str, Noise] = {
    "gaussian noise": lambda chance, _: chance.gauss(0, 1),
    "lognormal noise": lambda chance, _: chance.lognormvariate(0, 1),
    "noise of infinite variance (student t2)": _student,
    "whole numbers with many ties": lambda chance, _: float(round(chance.gauss(0, 0.7))),
}


def seasonal(period: int, height: float = 1.0) -> Noise:
    """A machine that is faster by night: measurements of different times are not alike."""
    return lambda chance, at: chance.gauss(0, 1) + height * math.sin(2 * math.pi * at / period)


@dataclass
class Play:
    """One campaign, from the champion's first measurement on. `false` counts what was kept and is no better."""

    noise: Noise
    chance: random.Random
    certify: Certify = NOISY
    measured: int = 0
    tests: int = 0
    kept: int = 0
    false: int = 0
    quality: float = 0.0
    reference: int = 1
    against: int = 0
    champion: list[Standing] = field(default_factory=list)

    def run(self, candidates: int, quality: Callable[["Play", int], float]) -> "Play":
        """`quality` says how good a candidate really is; the play ends with the first that is kept falsely."""
        for number in range(1, candidates + 1):
            self.try_out(quality(self, number))
            if self.false:
                break
        return self

    def measure(self, quality: float) -> Standing:
        self.measured += 1
        return (quality + self.noise(self.chance, self.measured),)

    def try_out(self, quality: float) -> None:
        first = self.measure(quality)
        while len(self.champion) < self.certify.champion:
            self.champion.append(self.measure(self.quality))
        theirs = self.champion[: self.certify.champion]
        if first <= median(theirs):
            return
        self.tests, self.against = self.tests + 1, self.against + 1
        repeats, stand = put_to_test(theirs, lambda: self.measure(quality), self.reference, self.against, self.certify)
        if stand is Stand.PROVEN:
            self.kept += 1
            self.false += quality <= self.quality
            self.quality, self.champion = quality, repeats
            self.reference, self.against = self.reference + 1, 0


def put_to_test(
    champion: list[Standing], measure: Callable[[], Standing], reference: int, against: int, certify: Certify = NOISY
) -> tuple[list[Standing], Stand]:
    """One test to its end: what was measured, and whether it proved anything."""
    level = certify.level(reference, against)
    repeats: list[Standing] = []
    stand = Stand.OPEN
    while stand is Stand.OPEN:
        repeats.append(measure())
        stand = look(champion, repeats, level, certify.repeats).stand
    return repeats, stand


def null(noise: Noise, seed: int, candidates: int = CANDIDATES) -> Play:
    """No candidate is any better than the baseline."""
    return Play(noise, random.Random(seed)).run(candidates, lambda play, _: play.quality)


def mixed(noise: Noise, seed: int, candidates: int = CANDIDATES) -> Play:
    """One candidate in ten is better by three deviations, the others are like the champion of then."""

    def quality(play: Play, number: int) -> float:
        return play.quality + (3.0 if number % 10 == 0 else 0.0)

    return Play(noise, random.Random(seed)).run(candidates, quality)


def lucky(noise: Noise, seed: int, candidates: int = CANDIDATES) -> bool:
    """Whether the strict rule, replay and all, keeps anything in a null campaign."""
    chance = random.Random(seed)
    bar = noise(chance, 0)
    return any(min(noise(chance, 0), noise(chance, 0)) > bar for _ in range(candidates))


def power(gain: float, against: int, seeds: int, certify: Certify = NOISY) -> tuple[float, float]:
    """How often an improvement of so many deviations is proven, and after how many repeats at the median."""
    counts = []
    for seed in range(seeds):
        chance = random.Random(f"{gain}/{against}/{seed}")
        champion: list[Standing] = [(chance.gauss(0, 1),) for _ in range(certify.champion)]
        repeats, stand = put_to_test(champion, partial(_drawn, chance, gain), 1, against, certify)
        if stand is Stand.PROVEN:
            counts.append(len(repeats))
    return len(counts) / seeds, statistics.median(counts) if counts else math.nan


def _drawn(chance: random.Random, quality: float) -> Standing:
    return (chance.gauss(quality, 1),)


async def measure(seeds: int) -> list[Figure]:
    figures = []
    for name, noise in NOISES.items():
        plays = [null(noise, seed) for seed in range(seeds)]
        figures += _false(f"{name}, {seeds} campaigns of {CANDIDATES} no-op candidates", plays)
    plays = [mixed(NOISES["gaussian noise"], seed) for seed in range(seeds)]
    kept = statistics.median(play.kept for play in plays)
    figures += _false(f"one candidate in ten really better, {kept:g} of 50 kept at the median", plays)
    strict = sum(lucky(NOISES["gaussian noise"], seed) for seed in range(seeds)) / seeds
    figures.append(Figure("the same under the strict rule, gaussian noise", strict, "of campaigns"))
    for period in (200, 5000):
        drifting = sum(null(seasonal(period), seed).false for seed in range(seeds)) / seeds
        figures.append(Figure(f"the same, a season of one deviation and {period} runs", drifting, "of campaigns"))
    for gain in (1, 2, 3):
        for against in (1, 50, 300):
            share, repeats = power(gain, against, seeds)
            told = f"{gain} deviations better, test {against}: proven ({repeats:g} repeats at the median)"
            figures.append(Figure(told, share, "of candidates"))
    return figures


def _false(what: str, plays: list[Play]) -> list[Figure]:
    hits = sum(play.false > 0 for play in plays)
    return [
        Figure(f"campaigns that keep anything falsely: {what}", hits / len(plays), "", "<= 0.05"),
        Figure("… and the upper end of its 95 % interval", wilson(hits, len(plays))[1], "", "<= 0.05"),
    ]
