"""The rules, alone: the same answer for the same curves, and nobody is ended whom nothing speaks against."""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.pruners import MedianPruner, SuccessiveHalvingPruner

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import Point
from orchestrator.pruning import Peer, Peers, Rule
from orchestrator.pruning.extrapolation import Extrapolation, below, chance
from orchestrator.pruning.optunas import Halving, Median
from orchestrator.pruning.wilcoxon import Wilcoxon, worse
from tests.chance import at_most

RULES: dict[str, Callable[[Goal, int], Rule]] = {
    "median": Median,
    "halving": lambda goal, startup: Halving(goal, startup, 2, 1),
    "wilcoxon": lambda goal, startup: Wilcoxon(goal, startup, 0.1),
    "curve": lambda goal, startup: Extrapolation(goal, startup, 0.05),
}
BOTH = pytest.mark.parametrize("goal", list(Goal))
EVERY = pytest.mark.parametrize("name", RULES)


def curve_of(*values: float) -> list[Point]:
    return list(enumerate(values))


def peers_of(*curves: Sequence[float], pruned: Sequence[Sequence[float]] = ()) -> Peers:
    """Each of the scored ones is better than the one before, by the judge."""
    scored = [Peer(f"1.{number}-1", tuple(curve_of(*curve)), number) for number, curve in enumerate(curves, 1)]
    gone = [Peer(f"2.{number}-1", tuple(curve_of(*curve))) for number, curve in enumerate(pruned, 1)]
    return Peers(scored, gone, scored[-1] if scored else None, len(scored))


def turned(goal: Goal, values: Sequence[float]) -> list[float]:
    return [value if goal is Goal.HIGHER else -value for value in values]


def rising(end: float, steps: int = 12) -> list[float]:
    return [end * (1 - 0.5 ** (step + 1)) for step in range(steps)]


@EVERY
@BOTH
def test_far_behind_is_pruned(name: str, goal: Goal) -> None:
    """Every rule ends a curve that is far behind all peers and flat, and says why in one line with the step."""
    peers = peers_of(*(turned(goal, rising(1 + n / 100)) for n in range(6)))
    decision = RULES[name](goal, 3).decide(curve_of(*turned(goal, rising(0.1, 9))), peers)
    assert decision.prune
    assert decision.why.startswith("step 8: ")
    assert "\n" not in decision.why


@EVERY
@BOTH
def test_ahead_is_kept(name: str, goal: Goal) -> None:
    """Nobody who is ahead of all peers is ended, at any step."""
    peers = peers_of(*(turned(goal, rising(1 + n / 100)) for n in range(6)))
    curve = curve_of(*turned(goal, rising(2.0)))
    assert not any(RULES[name](goal, 1).decide(curve[:size], peers).prune for size in range(1, len(curve) + 1))


@EVERY
def test_without_peers(name: str) -> None:
    """With nobody to compare with, or fewer than asked for, nothing is pruned."""
    bad = curve_of(*rising(0.1, 9))
    assert not RULES[name](Goal.HIGHER, 1).decide(bad, Peers()).prune
    assert not RULES[name](Goal.HIGHER, 4).decide(bad, peers_of(*[rising(1.0)] * 3)).prune


@EVERY
def test_equal_is_kept(name: str) -> None:
    """Who does exactly as all others do stays, at every step, and gets the same words each time."""
    curve, peers = curve_of(*rising(0.7)), peers_of(*[rising(0.7)] * 5)
    assert not any(RULES[name](Goal.HIGHER, 1).decide(curve[:size], peers).prune for size in range(1, 13))
    peers = peers_of(*(rising(1 + n / 10) for n in range(6)))
    assert len({RULES[name](Goal.HIGHER, 1).decide(curve_of(*rising(0.2, 9)), peers) for _ in range(3)}) == 1


@EVERY
def test_any_finite_values(name: str) -> None:
    """Whatever finite values are reported, at whatever steps, there is an answer and no error."""
    draw = random.Random(5)
    odd = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.7976931348623157e308, 1.0, -3.0]

    def curve() -> tuple[Point, ...]:
        steps = sorted(draw.sample([0, 1, 2, 3, 4, 5, 6, 7, 10**6, 2**40, 2**53 - 1], draw.randint(1, 9)))
        return tuple((step, draw.choice(odd)) for step in steps)

    for _ in range(100):
        scored = [Peer(str(number), curve(), draw.choice(odd)) for number in range(draw.randint(1, 6))]
        best = max(scored, key=lambda it: it.merit)
        peers = Peers(scored, [Peer("p", curve())], best, len(scored), draw.choice([None, Peer("0", ()), scored[0]]))
        for goal in Goal:
            assert RULES[name](goal, 1).decide(curve(), peers).prune in (True, False)


@BOTH
def test_exactly_at_the_median(goal: Goal) -> None:
    """Whoever is exactly at the median is kept, also where numpy's median of an even number is a digit beside it."""
    draw = random.Random(1)
    beside = 0
    for number in range(500):
        values = [round(draw.uniform(0, 1), 2) for _ in range(draw.choice([2, 3, 4, 7, 8]))]
        middle = statistics.median(values)
        is_beside = middle != float(np.nanpercentile(values, 50))
        beside += is_beside
        if number > 50 and not is_beside:
            continue
        peers = peers_of(*([0.0, value] for value in sorted(values, reverse=goal is Goal.LOWER)))
        worst = -9.0 if goal is Goal.HIGHER else 9.0
        assert not Median(goal, 1).decide([(0, worst), (1, middle)], peers).prune
    assert beside, "the case that the wrap is for did not occur"


def test_median_is_of_those_who_came_that_far() -> None:
    """Peers that were over before this step, or had not begun, are left out; between reports the last one counts."""
    peers = Peers([Peer("a", ((0, 9.0), (1, 9.0))), Peer("b", ((8, 9.0), (9, 9.0))), Peer("c", ((0, 1.0), (6, 2.0)))])
    assert not Median(Goal.HIGHER, 2).decide([(5, 0.5)], peers).prune
    assert Median(Goal.HIGHER, 1).decide([(5, 0.5)], peers).why.endswith("below the median 1 of 1 peers")
    assert not Median(Goal.HIGHER, 1).decide([(5, 1.5)], peers).prune


def test_empty_rung() -> None:
    """Whoever comes to a rung first, or before enough others, goes on; Optuna's own start-up would end it."""
    study = optuna.create_study(pruner=SuccessiveHalvingPruner(min_resource=1, bootstrap_count=2))
    trial = study.ask()
    trial.report(1.0, 1)
    assert trial.should_prune()
    rule = Halving(Goal.LOWER, 2, 2, 1)
    assert not rule.decide([(1, 99.0)], Peers()).prune
    assert not rule.decide([(1, 99.0)], peers_of([0.0, 0.0])).prune
    assert rule.decide([(1, 99.0)], peers_of([0.0, 0.0], [0.0, 0.0])).prune


def test_between_rungs() -> None:
    """Only at a rung is anybody ended: at 1, 2, 4, 8, or at the first report after one."""
    peers = peers_of(*[[1.0] * 12] * 4)
    rule = Halving(Goal.HIGHER, 1, 2, 1)
    curve = curve_of(*[0.0] * 10)
    assert [size - 1 for size in range(1, 11) if rule.decide(curve[:size], peers).prune] == [1, 2, 4, 8]
    assert rule.decide([(0, 0.0), (3, 0.0)], peers).prune
    assert not rule.decide([(4, 0.0), (5, 0.0)], peers).prune


def test_pruned_ones_came_to_the_rung() -> None:
    """Who was ended at a rung still counts there: a rung is not made of winners alone."""
    rule = Halving(Goal.HIGHER, 2, 2, 1)
    curve = [(1, 0.5)]
    assert rule.decide(curve, peers_of([0.0, 0.9], [0.0, 0.9])).prune
    assert not rule.decide(curve, peers_of([0.0, 0.9], [0.0, 0.9], pruned=[[0.0, 0.1]] * 4)).prune


@BOTH
def test_as_optuna_would(goal: Goal) -> None:
    """On random curves, the answers are those of Optuna in a study of its own. (Its signed ranks need scipy, so that
    ours are held against all signs by hand.)
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    draw = random.Random(goal)
    pairs: dict[str, tuple[Rule, Any]] = {
        "median": (Median(goal, 1), MedianPruner(n_startup_trials=1)),
        "halving": (Halving(goal, 1, 3, 1), SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)),
    }
    answers = dict.fromkeys(pairs, 0)
    for _ in range(20):
        curves = [[draw.gauss(0, 1) + n * step / 8 for step in range(10)] for n in range(draw.randint(1, 7))]
        mine = [draw.gauss(draw.uniform(-2, 1), 1) for _ in range(10)]
        for name, (rule, pruner) in pairs.items():
            peers = peers_of(*_consistent(goal, curves))
            theirs = _optuna_ends_at(pruner, goal, [[value for _, value in it.points] for it in peers.scored], mine)
            curve = curve_of(*mine)
            ours = next((size - 1 for size in range(1, 11) if rule.decide(curve[:size], peers).prune), None)
            assert ours == theirs, name
            answers[name] += ours is not None
    assert all(0 < count < 20 for count in answers.values()), answers


def _consistent(goal: Goal, curves: list[list[float]]) -> list[list[float]]:
    """The same values, in the order of the verdicts at each step, the best one twice: curves that nobody doubts."""
    columns = [sorted(column, reverse=goal is Goal.LOWER) for column in zip(*curves, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [*rows, rows[-1]]


def _optuna_ends_at(pruner: Any, goal: Goal, curves: list[list[float]], mine: list[float]) -> int | None:
    """The step at which Optuna ends my curve, after others ran whole: none of them is pruned."""
    maximize = optuna.study.StudyDirection.MAXIMIZE
    direction = maximize if goal is Goal.HIGHER else optuna.study.StudyDirection.MINIMIZE
    study = optuna.create_study(direction=direction, pruner=pruner)
    for curve in curves:
        trial = study.ask()
        for step, value in enumerate(curve):
            trial.report(value, step)
            if isinstance(pruner, SuccessiveHalvingPruner):
                trial.should_prune()
        study.tell(trial, curve[-1])
    trial = study.ask()
    for step, value in enumerate(mine):
        trial.report(value, step)
        if trial.should_prune():
            return step
    return None


@pytest.mark.parametrize("pairs", [[(1, 2)], [(1, 2), (3, 1), (0, 0)], [(1, 2), (1, 2), (5, 1)], [(0, 0)] * 3])
def test_signed_rank_by_hand(pairs: list[tuple[float, float]]) -> None:
    """The test is what one gets by trying every way in which the signs could have fallen, ties and zeros included."""
    differences = [mine - theirs for mine, theirs in pairs]
    order = sorted(map(abs, differences))
    ranks = [statistics.mean(n for n, it in enumerate(order, 1) if it == abs(one)) for one in differences]
    count = sum(rank for rank, one in zip(ranks, differences, strict=True) if one > 0)
    nonzero = [rank for rank, one in zip(ranks, differences, strict=True) if one]
    falls = [sum(itertools.compress(nonzero, signs)) for signs in itertools.product([0, 1], repeat=len(nonzero))]
    assert worse(np.array(pairs, dtype=float)) == pytest.approx(statistics.mean(fall <= count for fall in falls))


def test_students_distribution() -> None:
    """The finite series is the integral."""
    along = np.linspace(0, 3, 30_001)
    for freedom in range(1, 9):
        factor = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)
        area = float(np.trapezoid(factor * (1 + along**2 / freedom) ** (-(freedom + 1) / 2), along))
        high, low = below(np.array([3.0, -3.0]), freedom)
        assert (high, low) == (pytest.approx(0.5 + area, abs=1e-6), pytest.approx(0.5 - area, abs=1e-6))


def test_chance_is_honest() -> None:
    """Noisy curves of shapes that are not among the fitted ones seldom get where it was called improbable."""
    draw = random.Random(7)
    called = wrong = 0
    for _ in range(300):
        level, gain, speed = draw.uniform(0.5, 1), draw.uniform(0.3, 1), draw.uniform(0.1, 0.6)
        shape: Callable[[float], float] = draw.choice(
            [
                lambda t, s=speed: math.log(2) / math.log(2 + s * 10 * t),
                lambda t, s=speed: math.exp(-((s * t) ** 0.7)),
                lambda t, s=speed: 1 / (1 + s * t) ** 1.3,
            ]
        )
        values = [level - gain * shape(step) + draw.gauss(0, 0.01) for step in range(41)]
        bar = values[40] + draw.gauss(0, 0.15)
        if chance(list(enumerate(values[:12])), 40, bar) < 0.05:
            called += 1
            wrong += values[40] > bar
    assert called > 50
    assert wrong <= at_most(called, 0.05)


def test_few_points_leave_it_open() -> None:
    """After four points of a rising curve, hardly anything is ruled out; after many, what is out of reach is."""
    curve = [(step, 1 - 0.9 * (step + 1) ** -0.5) for step in range(60)]
    assert chance(curve[:4], 100, 0.99) > 0.05
    assert chance(curve, 100, 0.99) < 0.01
    assert chance(curve, 100, 0.85) > 0.95
