"""How often a campaign under noise keeps what is no improvement, and how often it finds what is one. No chambers.

Everything is decided by `orchestrator.domain.certify`, as in the loop; only the measurements are drawn. Campaigns that
measure for real are in `loaded`.
"""

import math
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from benchmarks.chance import wilson
from benchmarks.figure import Figure
from orchestrator.domain.certify import (
    EACH,
    Block,
    Certify,
    CertifyRule,
    Stand,
    Standing,
    look,
    look_at_blocks,
    median,
    turns,
)

CANDIDATES = 500
NOISY = Certify(rule=CertifyRule.NOISY)
# The rule that measured a champion once, beforehand: what it was tested with, to compare.
BEFORE = Certify(rule=CertifyRule.NOISY, repeats=20, champion=20)
Noise = Callable[[random.Random, int], float]
_FRESH = 4


def _student(chance: random.Random, _: int) -> float:
    """Two degrees of freedom: a variance that is infinite."""
    return chance.gauss(0, 1) / math.sqrt(chance.expovariate(1.0))


def drifting(drift: Callable[[int], float]) -> Noise:
    """A machine whose so-manieth run is off by `drift` deviations, of candidate and champion alike."""
    return lambda chance, at: chance.gauss(0, 1) + drift(at)


def _steps(at: int) -> float:
    """Three deviations up or down, about every hundred runs."""
    return 3.0 * (random.Random(at // 100).random() < 0.5)


# What is added to a score at the so-manieth measurement.
NOISES: dict[str, Noise] = {
    "gaussian noise": drifting(lambda _: 0.0),
    "lognormal noise": lambda chance, _: chance.lognormvariate(0, 1),
    "noise of infinite variance (student t2)": _student,
    "whole numbers with many ties": lambda chance, _: float(round(chance.gauss(0, 0.7))),
}
DRIFTS: dict[str, Noise] = {
    "a season of 1 deviation and 200 runs": drifting(lambda at: math.sin(2 * math.pi * at / 200)),
    "a season of 1 deviation and 5000 runs": drifting(lambda at: math.sin(2 * math.pi * at / 5000)),
    "a season of 3 deviations and 40 runs": drifting(lambda at: 3 * math.sin(2 * math.pi * at / 40)),
    "steps of 3 deviations": drifting(_steps),
    "a machine that gets faster, 1 deviation in 20 runs": drifting(lambda at: at / 20),
    "a machine that gets slower, 1 deviation in 20 runs": drifting(lambda at: -at / 20),
}


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
    champion: list[tuple[int, Standing]] = field(default_factory=list)

    def run(self, candidates: int, quality: Callable[["Play", int], float]) -> "Play":
        """`quality` says how good a candidate really is; the play ends with the first that is kept falsely."""
        for number in range(1, candidates + 1):
            self.try_out(number, quality(self, number))
            if self.false:
                break
        return self

    def measure(self, quality: float) -> Standing:
        self.measured += 1
        return (quality + self.noise(self.chance, self.measured),)

    def try_out(self, number: int, quality: float) -> None:
        first = self.measure(quality)
        if first <= median(self._screen(number)):
            return
        self.tests, self.against = self.tests + 1, self.against + 1
        blocks, stand = self._test(quality)
        self.champion += [(number, value) for block in blocks for value in block.champion]
        if stand is Stand.PROVEN:
            self.kept += 1
            self.false += quality <= self.quality
            self.quality = quality
            self.champion = [(number, value) for block in blocks for value in block.candidate]
            self.reference, self.against = self.reference + 1, 0

    def _screen(self, number: int) -> list[Standing]:
        """The champion's latest measurements, as fresh as the loop wants them."""
        most = self.certify.champion
        self.champion = [it for it in self.champion[-most:] if it[0] >= number - _FRESH * most]
        while len(self.champion) < most:
            self.champion.append((number, self.measure(self.quality)))
        return [value for _, value in self.champion]

    def _test(self, quality: float) -> tuple[list[Block], Stand]:
        level = self.certify.level(self.reference, self.against)
        coin = f"{self.chance.random()}"
        return put_to_test(lambda mine: self.measure(quality if mine else self.quality), level, coin, self.certify)


class Told(NamedTuple):
    """What is left of a play, for another process."""

    measured: int
    kept: int
    false: int


def put_to_test(
    measure: Callable[[bool], Standing], level: float, coin: str, certify: Certify = NOISY
) -> tuple[list[Block], Stand]:
    """One test to its end, looked at after every run: what was measured, and whether it proved anything."""
    blocks: list[Block] = []
    stand = look_at_blocks(blocks, level, certify.blocks).stand
    while stand is Stand.OPEN:
        blocks.append(Block())
        for mine in turns(coin, len(blocks)):
            value, last = measure(mine), blocks[-1]
            sides = ((*last.champion, value), last.candidate) if not mine else (last.champion, (*last.candidate, value))
            blocks[-1] = Block(*sides)
            stand = look_at_blocks(blocks, level, certify.blocks).stand
            if stand is not Stand.OPEN:
                break
    return blocks, stand


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
    """How often an improvement of so many deviations is proven, and after how many runs of both at the median."""
    counts = []
    for seed in range(seeds):
        chance = random.Random(f"{gain}/{against}/{seed}")
        level = certify.level(1, against)
        blocks, stand = put_to_test(lambda mine, chance=chance: _drawn(chance, gain * mine), level, f"{seed}", certify)  # type: ignore[misc] # a default binds it
        if stand is Stand.PROVEN:
            counts.append(2 * EACH * len(blocks))
    return len(counts) / seeds, statistics.median(counts) if counts else math.nan


def power_before(gain: float, against: int, seeds: int) -> float:
    """The same where the champion is measured once, beforehand, and the machine stands still."""
    proven = 0
    for seed in range(seeds):
        chance = random.Random(f"{gain}/{against}/{seed}")
        champion = [_drawn(chance, 0.0) for _ in range(BEFORE.champion)]
        proven += _beats(champion, lambda chance=chance: _drawn(chance, gain), BEFORE.level(1, against))  # type: ignore[misc] # a default binds it
    return proven / seeds


def null_before(noise: Noise, seed: int, candidates: int = CANDIDATES) -> bool:
    """Whether a null campaign keeps anything where the champion is measured once, beforehand."""
    chance, at = random.Random(seed), 0

    def measure() -> Standing:
        nonlocal at
        at += 1
        return (noise(chance, at),)

    champion = [measure() for _ in range(BEFORE.champion)]
    bar, against = median(champion), 0
    for _ in range(candidates):
        if measure() <= bar:
            continue
        against += 1
        if _beats(champion, measure, BEFORE.level(1, against)):
            return True
    return False


def _beats(champion: list[Standing], measure: Callable[[], Standing], level: float) -> bool:
    repeats: list[Standing] = []
    stand = Stand.OPEN
    while stand is Stand.OPEN:
        repeats.append(measure())
        stand = look(champion, repeats, level, BEFORE.repeats).stand
    return stand is Stand.PROVEN


def _drawn(chance: random.Random, quality: float) -> Standing:
    return (chance.gauss(quality, 1),)


async def measure(seeds: int) -> list[Figure]:
    figures = []
    with ProcessPoolExecutor() as pool:
        for name, noise in (NOISES | DRIFTS).items():
            plays = list(pool.map(_null_of, repeat(name), range(seeds), chunksize=10))
            figures += _false(f"{name}, {seeds} campaigns of {CANDIDATES} no-op candidates", plays)
            if name in DRIFTS:
                before = sum(null_before(noise, seed) for seed in range(seeds)) / seeds
                figures.append(Figure("… and where the champion was measured once, beforehand", before, ""))
        plays = list(pool.map(_mixed, range(seeds), chunksize=10))
    kept = statistics.median(play.kept for play in plays)
    figures += _false(f"one candidate in ten really better, {kept:g} of 50 kept at the median", plays)
    strict = sum(lucky(NOISES["gaussian noise"], seed) for seed in range(seeds)) / seeds
    figures.append(Figure("the same under the strict rule, gaussian noise", strict, "of campaigns"))
    for gain in (1, 2, 3):
        for against in (1, 50, 300):
            share, runs = power(gain, against, seeds)
            before = power_before(gain, against, seeds)
            told = f"proven ({runs:g} runs of both at the median; measured once beforehand {before:.3g})"
            figures.append(Figure(f"{gain} deviations better, test {against}: {told}", share, "of candidates"))
    return figures


def _null_of(name: str, seed: int) -> Told:
    return told_of(null((NOISES | DRIFTS)[name], seed))


def _mixed(seed: int) -> Told:
    return told_of(mixed(NOISES["gaussian noise"], seed))


def told_of(play: Play) -> Told:
    return Told(play.measured, play.kept, play.false)


def _false(what: str, plays: list[Told]) -> list[Figure]:
    hits = sum(play.false > 0 for play in plays)
    runs = statistics.median(play.measured for play in plays) / CANDIDATES
    return [
        Figure(f"campaigns that keep anything falsely: {what}", hits / len(plays), "", "<= 0.05"),
        Figure("… and the upper end of its 95 % interval", wilson(hits, len(plays))[1], "", "<= 0.05"),
        Figure("… runs for each candidate, all included", runs, ""),
    ]
