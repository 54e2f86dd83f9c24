"""What a proposal costs on a short and on a long history, whether TPE behind our interface is as good as bare, and what
bandit and population bring beside random draws.

Regret is how far the best point lies above the lowest value. Both start from the same ten random points, so that they
differ in what they make of them and not in luck. Bare is `optuna.samplers.TPESampler(seed=…)` with its defaults.
"""

import asyncio
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.chance import interval, resampled
from benchmarks.figure import Figure
from benchmarks.functions import CHOICES, FUNCTIONS, Function
from orchestrator.change import Tree
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.proposal import Value
from orchestrator.proposers import Brief, Proposer, Tried
from orchestrator.proposers.base import Nothing
from orchestrator.proposers.samplers import make_sampler
from orchestrator.proposers.space import random_point
from orchestrator.task import Bool, Choice, Float, Int, Parameter

ONE = Ranking((Metric(),))
SHORT, LONG, ASKS = 100, 10_000, 15
STARTUP = 10
SPACE: dict[str, Parameter] = {
    "cooling": Float(low=0.5, high=3.0),
    "give": Float(low=0.1, high=10.0, log=True),
    "growth": Float(low=1e-4, high=1.0, log=True),
    "layout": Choice(values=("hexagonal", "rings", "scattered", "square")),
    "mirrored": Bool(),
    "rows": Int(low=3, high=7, when={"layout": ("hexagonal", "square")}),
    "seed": Int(low=0, high=999, points=100),
    "steps": Int(low=100, high=3000, step=100),
}


class Grown(Nothing):
    """A past that grows by one attempt after the other."""

    def __init__(self) -> None:
        self.attempts: list[Tried] = []
        self.ended: Sequence[Tried] = self.attempts

    def add(self, point: Mapping[str, Value], merit: float) -> None:
        number = len(self.attempts) + 1
        node = f"1.{number}"
        self.attempts.append(Tried(node, number, "1", "x", "x", dict(point), (merit,), None))


async def proposed(proposer: Proposer, past: Grown, seed: int) -> dict[str, Value]:
    number = len(past.attempts) + 1
    brief = Brief(f"1.{number}", "1", number, seed, Tree(), past=past)
    (proposal,) = await proposer.propose(brief)
    return dict(proposal.params or {})


async def measure(seeds: int) -> list[Figure]:
    figures = [figure for name in ("tpe", "cmaes", "gp", "thompson", "de") for figure in await _cost(name)]
    figures += _beside_random("thompson", CHOICES, seeds, 60) + _beside_random("de", FUNCTIONS, seeds, 200)
    return figures + _regrets(seeds, 100, FUNCTIONS, "<= 1.05") + _regrets(max(2, seeds // 4), 600, FUNCTIONS[1:2], "")


async def _cost(name: str) -> list[Figure]:
    """Processor time of a proposal, short and long in turn; the past was looked at before."""
    pasts = {length: _filled(name, length) for length in (SHORT, LONG)}
    samplers = {length: make_sampler(name, SPACE, ONE) for length in pasts}
    spent: dict[int, list[float]] = {length: [] for length in pasts}
    for seed in range(ASKS + 1):
        for length, past in pasts.items():
            before = time.process_time()
            point = await proposed(samplers[length], past, seed)
            spent[length].append((time.process_time() - before) * 1000)
            past.add(point, _merit(point))
    short, long = (statistics.median(spent[length][1:]) for length in (SHORT, LONG))
    return [
        Figure(f"{name}: CPU of a proposal after {SHORT} attempts", short, "ms"),
        Figure(f"{name}: CPU of a proposal after {LONG} attempts", long, "ms"),
        Figure(f"{name}: long / short", long / short, "x", "<= 3"),
    ]


def _filled(name: str, length: int) -> Grown:
    from orchestrator.proposers.samplers.thompson import arms_of  # loads numpy

    rng, past = random.Random(1), Grown()
    space = arms_of(SPACE) if name == "thompson" else SPACE
    for _ in range(length):
        point = random_point(space, rng)
        past.add(point, _merit(point))
    return past


def _merit(point: Mapping[str, Value]) -> float:
    return -abs(float(point["cooling"]) - 2) - abs(float(point["give"]) - 1) - int(point["seed"]) / 1000


def _beside_random(name: str, functions: Sequence[Function], seeds: int, trials: int) -> list[Figure]:
    """The mean regret / that of random draws, both in units of a random point's, with the interval over seeds."""
    asked = [(name, it, seed, trials) for it in functions for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pairs = list(pool.map(_with_random, asked))
    units = [_unit(it) for it in functions]
    found = [
        [(ours / unit, blind / unit) for ours, blind in pairs[at * seeds : (at + 1) * seeds]]
        for at, unit in enumerate(units)
    ]
    what = functions[0].name if len(functions) == 1 else "all functions"
    said = f"{name}, {what}, {trials} trials, {seeds} seeds: regret / random {_said(_interval(found))}"
    return [Figure(said, _ratio(found), "x", "<= 0.5")]


def _with_random(asked: tuple[str, Function, int, int]) -> tuple[float, float]:
    name, function, seed, trials = asked
    rng = random.Random(f"{function.name}/{seed}")
    blind = min(function.regret(random_point(function.space, rng)) for _ in range(trials))
    return asyncio.run(_ours(function, (), seed, trials, name)), blind


def _regrets(seeds: int, trials: int, functions: Sequence[Function], goal: str) -> list[Figure]:
    """Our mean regret / Optuna's, with the interval over seeds. Over all functions, each counts in units of its own:
    the regret of a random point."""
    places = [(place, seed, trials) for place, it in enumerate(FUNCTIONS) if it in functions for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        pairs = list(pool.map(_both, places))
    found = [pairs[at * seeds : (at + 1) * seeds] for at in range(len(functions))]
    units = [_unit(it) for it in functions]
    found = [[(ours / unit, bare / unit) for ours, bare in of] for of, unit in zip(found, units, strict=True)]
    figures = [
        Figure(f"TPE, {it.name}, {trials} trials: regret, ours / bare {_said(_interval([of]))}", _ratio([of]), "x")
        for it, of in zip(functions, found, strict=True)
    ]
    name = f"TPE, all of them, {trials} trials, {seeds} seeds: regret, ours / bare {_said(_interval(found))}"
    return [*figures, Figure(name, _ratio(found), "x", goal)] if len(functions) > 1 else figures


def _ratio(found: Sequence[Sequence[tuple[float, float]]]) -> float:
    return sum(ours for of in found for ours, _ in of) / sum(bare for of in found for _, bare in of)


def _interval(found: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    return interval(lambda rng: _ratio([resampled(of, rng) for of in found]))


def _unit(function: Function) -> float:
    rng = random.Random(0)
    return statistics.fmean(function.regret(random_point(function.space, rng)) for _ in range(1000))


def _said(of: tuple[float, float]) -> str:
    return f"[{of[0]:.2f}, {of[1]:.2f}]"


def _both(place: tuple[int, int, int]) -> tuple[float, float]:
    from benchmarks.bare import bare_regret  # loads numpy, which must find the number of threads set

    at, seed, trials = place
    function = FUNCTIONS[at]
    rng = random.Random(f"{function.name}/{seed}")
    start = [random_point(function.space, rng) for _ in range(STARTUP)]
    return asyncio.run(_ours(function, start, seed, trials)), bare_regret(function, start, seed, trials)


async def _ours(
    function: Function, start: Sequence[Mapping[str, Value]], seed: int, trials: int, name: str = "tpe"
) -> float:
    sampler, past = make_sampler(name, function.space, ONE), Grown()
    least = float("inf")
    for number in range(trials):
        point = start[number] if number < len(start) else await proposed(sampler, past, seed)
        least = min(least, function.regret(point))
        past.add(point, -function.regret(point))
    return least
