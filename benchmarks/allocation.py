"""Whether a split of the dollars that follows the users' results does better than one that is fixed.

Every fixed split of a grid is played on tuning seeds, the same that the allocator's own constants were found on; the
best of them for each regime, and the best for all, then meet the allocator on seeds that nobody has seen.
"""

import statistics
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from benchmarks.chance import of_mean
from benchmarks.figure import Figure
from benchmarks.landscape import REGIMES, Regime, played
from orchestrator.budget.allocation import RoleShare, Split

SEEDS: Final = 400
_TUNING: Final = range(60)
_FIRST_SEED: Final = 10_000
_EVOLVER: Final = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
_VERIFIER: Final = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)

# The defaults of [roles.evolver]. A verifier of the landscape spends all of its share, so it gets less than a real one
# by default, which is asked once a change.
ADAPTIVE: Final = Split(RoleShare(0.1, 0.02, 0.5), RoleShare(0.1, 0.02, 0.2))

Pair = tuple[float, float]
PAIRS: Final[Sequence[Pair]] = tuple(product(_EVOLVER, _VERIFIER))


async def measure(seeds: int = SEEDS) -> list[Figure]:
    tuned = {regime: {pair: _mean(regime, pair) for pair in PAIRS} for regime in REGIMES}
    best = {regime: max(PAIRS, key=means.__getitem__) for regime, means in tuned.items()}
    overall = max(PAIRS, key=lambda pair: statistics.fmean(means[pair] for means in tuned.values()))
    return _figures(best, overall, range(_FIRST_SEED, _FIRST_SEED + seeds))


def _figures(best: Mapping[Regime, Pair], overall: Pair, seeds: range) -> list[Figure]:
    figures: list[Figure] = []
    against_best: list[float] = []
    against_one: list[float] = []
    for regime in REGIMES:
        ours = [played(regime, seed, ADAPTIVE) for seed in seeds]
        own = [played(regime, seed, fixed(best[regime])) for seed in seeds]
        one = [played(regime, seed, fixed(overall)) for seed in seeds]
        figures.append(Figure(f"{regime.name}: distance closed with the allocator", statistics.fmean(ours), "e-folds"))
        figures.append(_versus(f"{regime.name}: more than with its best fixed split, {_told(best[regime])}", ours, own))
        against_best += [mine - other for mine, other in zip(ours, own, strict=True)]
        against_one += [mine - other for mine, other in zip(ours, one, strict=True)]
    figures.append(_gain("all regimes: more than with the best fixed split of each", against_best))
    figures.append(_gain(f"all regimes: more than with the best fixed split for all, {_told(overall)}", against_one))
    low, _ = of_mean(against_one)
    figures.append(Figure("the same, lower end of its interval", low, "e-folds", ">= 0"))
    return figures


def _versus(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    return _gain(name, [mine - other for mine, other in zip(ours, theirs, strict=True)])


def _gain(name: str, differences: Sequence[float]) -> Figure:
    low, high = of_mean(differences)
    return Figure(name, statistics.fmean(differences), f"e-folds (95 %: {low:+.3f} to {high:+.3f})")


def fixed(pair: Pair) -> Split:
    """A split that nothing changes: floor, share and cap are one."""
    evolver, verifier = pair
    return Split(RoleShare(evolver, evolver, evolver), RoleShare(verifier, verifier, verifier))


def _mean(regime: Regime, pair: Pair) -> float:
    return statistics.fmean(played(regime, seed, fixed(pair)) for seed in _TUNING)


def _told(pair: Pair) -> str:
    return f"evolver {pair[0]:.0%}, verifier {pair[1]:.0%}"
