"""Circle packing: TPE against random draws at equal budget, for the n of the example and some that nobody tuned for.

The real proposers and the example's own space and solver. Trials run in this machine's processes and not in chambers:
it is our own unchanged `pack()`, no candidate's code, and 84,000 chambers would take a day. What a search found best is
checked exactly, as the judge does.
"""

import asyncio
import importlib.util
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import ModuleType

from benchmarks.chance import above, above_in_all, interval, resampled
from benchmarks.figure import Figure
from benchmarks.samplers import ONE, Grown, proposed
from orchestrator.domain.proposal import Value
from orchestrator.proposers import Proposer, Random
from orchestrator.proposers.samplers import make_sampler
from orchestrator.task import Parameter, load_task

FOLDER = Path(__file__).parents[1] / "examples/circle_packing"
TRIALS, WANTED = 300, 2.630
TUNED, OTHERS = 26, (20, 22, 24, 28, 30, 32)
SHOWN = (10, 30, 100, 300)
COMPARED = (100, 300)


@dataclass(frozen=True)
class Search:
    arm: str
    n: int
    seed: int
    trials: int


async def measure(seeds: int, trials: int = TRIALS) -> list[Figure]:
    numbers = (TUNED, *OTHERS)
    searches = [Search(arm, n, seed, trials) for n in numbers for arm in ("tpe", "random") for seed in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(searches, pool.map(searched, searches), strict=True))
    figures = [figure for n in numbers for figure in _figures(n, found)]
    for at in COMPARED:
        groups = [
            [[max(it[:at]) for of, it in found.items() if (of.n, of.arm) == (n, arm)] for arm in ("tpe", "random")]
            for n in OTHERS
        ]
        name = f"circles, the {len(OTHERS)} other n together: p of tpe above random after {at} trials"
        figures.append(Figure(name, above_in_all([(tpe, random) for tpe, random in groups]), "", "<= 0.01"))
    return figures


def _figures(n: int, found: Mapping[Search, Sequence[float]]) -> list[Figure]:
    arms = {
        arm: [list(accumulate(it, max)) for of, it in found.items() if (of.n, of.arm) == (n, arm)]
        for arm in ("tpe", "random")
    }
    seeds, trials = len(arms["tpe"]), len(arms["tpe"][0])
    figures = [
        Figure(
            f"circles, n = {n}, {seeds} seeds: {arm}, median after {at} trials {_said([it[at - 1] for it in of])}",
            _median([it[at - 1] for it in of]),
            "",
        )
        for arm, of in arms.items()
        for at in SHOWN
        if at <= trials
    ]
    if n == TUNED:
        for arm, goal in (("tpe", f"<= {TRIALS}"), ("random", "")):
            reached = [_reached(it) for it in arms[arm]]
            name = f"circles, n = {n}: {arm}, median trial that reaches {WANTED:.3f} {_said(reached)}"
            figures.append(Figure(name, _median(reached), "", goal))
    for at in COMPARED:
        p = above([it[at - 1] for it in arms["tpe"]], [it[at - 1] for it in arms["random"]])
        goal = "<= 0.01" if n == TUNED else ""
        figures.append(Figure(f"circles, n = {n}: p of tpe above random after {at} trials", p, "", goal))
    return figures


def _reached(best: Sequence[float]) -> float:
    """The first trial; one more than there are where it is never reached."""
    return next((at for at, score in enumerate(best, 1) if score >= WANTED), len(best) + 1)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _said(values: Sequence[float]) -> str:
    low, high = interval(lambda rng: _median(resampled(values, rng)))
    return f"[{low:.4g}, {high:.4g}]"


def searched(search: Search) -> list[float]:
    """The scores of a whole search, in order."""
    return asyncio.run(_searched(search))


async def _searched(search: Search) -> list[float]:
    proposer, past = _proposer(search.arm), Grown()
    best: list[list[float]] = []
    for _ in range(search.trials):
        point = await proposed(proposer, past, search.seed)
        packing = packed(search.n, json.dumps(point, sort_keys=True))
        score = sum(circle[2] for circle in packing)
        if not past.attempts or score > max(it.merits[0] for it in past.attempts if it.merits):
            best = packing
        past.add(point, score)
    check(best, search.n)
    return [it.merits[0] for it in past.attempts if it.merits]


def _proposer(arm: str) -> Proposer:
    space = _space()
    return make_sampler(arm, space, ONE) if arm != "random" else Random(space, branching=False)


@cache
def _space() -> dict[str, Parameter]:
    parameters = load_task(FOLDER).parameters
    assert parameters  # noqa: S101  # the example has them
    return parameters.space


@cache
def _solver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("solve", FOLDER / "workspace/solve.py")
    assert spec and spec.loader  # noqa: S101, PT018  # the file is there
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def packed(n: int, point: str) -> list[list[float]]:
    """Nothing is left to chance in a packing, so a point is tried once."""
    params: dict[str, Value] = {"rows": 1, **json.loads(point)}
    found: list[list[float]] = _solver().pack(n, params)
    return found


def check(packing: Sequence[Sequence[float]], n: int) -> None:
    """By fractions, like the judge: no rounding, no tolerance."""
    circles = [tuple(map(Fraction, circle)) for circle in packing]
    inside = all(r <= x <= 1 - r and r <= y <= 1 - r for x, y, r in circles)
    apart = all(
        (x - u) ** 2 + (y - v) ** 2 >= (r + s) ** 2 for at, (x, y, r) in enumerate(circles) for u, v, s in circles[:at]
    )
    if len(circles) != n or not inside or not apart:
        raise ValueError("this is no packing")
