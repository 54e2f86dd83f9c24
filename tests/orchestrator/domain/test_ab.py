"""Campaigns in pairs: what counts of each, and what is made of the differences."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from orchestrator.domain.ab import Outcome, Pair, Scale, median_of, outcome_of, versus
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal, Metric, Ranking, Rule
from orchestrator.domain.records import Role
from orchestrator.domain.signed_rank import difference_of
from tests.orchestrator.views.campaign.builder import Story

HIGHER, LOWER = Scale("score", Goal.HIGHER), Scale("seconds", Goal.LOWER)


def pairs_of(
    *finals: tuple[float | None, float | None], cohorts: Sequence[str] = ("c", "c"), start: float = 0.0
) -> list[Pair]:
    def outcome(value: float | None, cohort: str) -> Outcome:
        return Outcome(steps=((0, start), (4, value)) if value is not None else (), attempts=10, cohort=cohort)

    return [Pair(seed, outcome(a, cohorts[0]), outcome(b, cohorts[1])) for seed, (a, b) in enumerate(finals)]


def test_the_interval_is_the_tests_own() -> None:
    """A shift is inside exactly where the test, told that shift, does not refute it at 5 %."""
    draw = random.Random(1)
    found = [draw.gauss(0.3, 1) for _ in range(9)]
    told = difference_of(found)
    assert told
    assert told.low is not None
    assert told.high is not None
    for shift in [told.low, told.high]:
        for side in (-1e-9, 1e-9):
            moved = difference_of([it - shift - side for it in found])
            assert moved
            assert (moved.p > 0.05) == (told.low < shift + side < told.high)


def test_few_pairs_prove_little() -> None:
    """Five pairs have no interval of 95 %, and nothing at all has no difference."""
    assert difference_of([]) is None
    five = difference_of([1.0, 2, 3, 4, 5])
    assert five
    assert (five.low, five.p) == (None, 2 / 2**5)


@pytest.mark.parametrize(("scale", "sign"), [(HIGHER, 1), (LOWER, -1)])
def test_better_follows_the_goal(scale: Scale, sign: int) -> None:
    """Of merits: where lower is better, a lower value of b is above nothing; no difference has no sign."""
    found = versus(pairs_of(*[(1.0, 1.0 + at / 10) for at in range(1, 8)]), scale, 10).final
    assert found
    assert (found.above, found.below) == ((7, 0) if sign > 0 else (0, 7))
    assert found.typical == pytest.approx(sign * 0.4)
    assert math.copysign(1.0, scale.of_merit(0.0)) == 1.0


def test_a_failed_campaign_loses_its_pair() -> None:
    """It is worse than any score; two failures of one pair are a tie, and none is dropped."""
    found = versus(pairs_of((1.0, None), (None, None), (1.0, 2.0)), HIGHER, 10).final
    assert found
    assert (found.above, found.below, found.equal) == (1, 1, 1)


def test_what_cannot_be_compared_is_left_out() -> None:
    """Campaigns of different cohorts have no difference; a failed one has no cohort, and counts."""
    assert versus(pairs_of((1.0, 2.0), cohorts=("c", "d")), HIGHER, 10).final is None
    assert versus(pairs_of((1.0, None), cohorts=("c", "")), HIGHER, 10).final is not None


def test_targets() -> None:
    """As asked, else the task's, else what the worse side reaches in half of its campaigns."""
    pairs = pairs_of((1.0, 5.0), (2.0, 6.0), (3.0, 7.0))
    assert versus(pairs, HIGHER, 10, 4.0).target == 4.0
    assert versus(pairs, Scale("score", Goal.HIGHER, 3.5), 10).target == 3.5
    assert versus(pairs, HIGHER, 10).target == 2.0
    falling = pairs_of((1.0, 5.0), (2.0, 6.0), (3.0, 7.0), start=9.0)
    assert versus(falling, LOWER, 10).target == 6.0


def test_no_target_at_the_baseline() -> None:
    """Where the worse side stays where all began, nothing takes any attempts; a target that was asked for stays one."""
    pairs = pairs_of((0.0, 5.0), (0.0, 6.0), (3.0, 7.0))
    found = versus(pairs, HIGHER, 10)
    assert (found.target, found.to_target, found.is_baseline) == (None, None, True)
    assert found.final
    asked = versus(pairs, HIGHER, 10, 0.0)
    assert (asked.target, asked.is_baseline) == (0.0, False)
    assert not versus(pairs_of((1.0, 5.0)), HIGHER, 10).is_baseline


def test_attempts_to_the_target() -> None:
    """A campaign that never got there took longer than all that did; the ratio is of b to a."""
    some = Outcome(steps=((0, 0.0), (8, 1.0)))
    half = Outcome(steps=((0, 0.0), (4, 1.0)))
    never = Outcome(steps=((0, 0.0),))
    assert (some.reached(1.0, HIGHER), never.reached(1.0, HIGHER), never.reached(0.0, HIGHER)) == (8, None, 0)
    found = versus([Pair(seed, some, half) for seed in range(7)], HIGHER, 10, 1.0).to_target
    assert found
    assert math.exp(found.typical) == pytest.approx(0.5)
    worse = versus([Pair(0, some, never), Pair(1, never, never)], HIGHER, 10, 1.0).to_target
    assert worse
    assert (worse.above, worse.equal) == (1, 1)
    assert median_of([1, None, 3]) == 3
    assert median_of([1, None, None]) is None


def test_the_area() -> None:
    """The best so far, averaged over the budget; an early end keeps its last value."""
    stair = Outcome(steps=((0, 0.0), (2, 1.0), (6, 3.0)), attempts=6)
    assert stair.mean(10) == pytest.approx((2 * 0 + 4 * 1 + 4 * 3) / 10)
    assert stair.mean(2) == 0.0
    assert Outcome().mean(10) is None


def test_what_a_campaign_came_to() -> None:
    """What it kept, after as many attempts as were charged until then: failures cost, refunds and controls do not."""
    story = Story().open()
    story.baseline(1.0)
    story.attempt(value=0.5)
    story.attempt(ending=Ending.FAILED)
    story.attempt(ending=Ending.INFRASTRUCTURE)
    story.attempt(value=9.0, role=Role.CONTROL)
    story.attempt(value=2.0, kept=True)
    story.attempt(value=1.5)
    found = outcome_of(story.state, Ranking([Metric()]), 7)
    assert (found.steps, found.attempts, found.usd) == (((0, 1.0), (3, 2.0)), 4, 7)
    assert found.final == 2.0
    weighted = outcome_of(story.state, Ranking([Metric(goal=Goal.LOWER, weight=2.0)], Rule.WEIGHTED), 0)
    assert weighted.steps == ((0, -2.0), (3, -4.0))
    assert outcome_of(Story().open().state, Ranking([Metric()]), 0).final is None, "nothing to show without a baseline"


def test_every_sign_is_counted() -> None:
    """p is the share of all signs that favour one side as clearly, on either side."""
    found = [0.5, -1.0, 2.0, 3.0, -0.25, 4.0]
    order = sorted(map(abs, found))

    def above(signs: Sequence[int]) -> int:
        return sum(order.index(abs(it)) + 1 for it, sign in zip(found, signs, strict=True) if sign > 0)

    own = above([1 if it > 0 else -1 for it in found])
    every = [above(signs) for signs in itertools.product((1, -1), repeat=len(found))]
    tail = sum(it >= own for it in every) / len(every)
    told = difference_of(found)
    assert told
    assert told.p == pytest.approx(2 * tail)
