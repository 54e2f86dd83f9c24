"""The proof by ranks: exact where all orders can be counted, played out where they cannot."""

import itertools
import math
import random
from collections.abc import Callable, Iterator

import pytest

from benchmarks import certify as played
from orchestrator.domain.certify import (
    Certify,
    CertifyRule,
    Stand,
    Standing,
    log_evidence,
    look,
    look_at_blocks,
    median,
)
from tests.chance import at_least, at_most

NOISY = Certify(rule=CertifyRule.NOISY, repeats=24, champion=5)
FASTER = "a machine that gets faster, 1 deviation in 20 runs"


def values(*numbers: float) -> list[Standing]:
    return [(number,) for number in numbers]


def histories(steps: int, whose: Callable[[str], bool], order: str = "") -> Iterator[str]:
    """All ways in which ranks can come in, from the lowest on: `x` the candidate's, `c` the champion's."""
    if steps == 0:
        yield order
        return
    mark = "x" if whose(order) else "c"
    for at in range(len(order) + 1):
        yield from histories(steps - 1, whose, order[:at] + mark + order[at:])


def of_order(order: str) -> float:
    mine = [place for place, mark in enumerate(order) if mark == "x"]
    theirs = [place for place, mark in enumerate(order) if mark == "c"]
    return math.exp(log_evidence(values(*theirs), values(*mine)))


@pytest.mark.parametrize(
    "whose",
    [
        lambda order: len(order) >= 3,
        lambda order: len(order) % 2 == 1,
        lambda order: not order.endswith("x"),
        lambda order: order.count("x") <= order.count("c") or order.startswith("x"),
    ],
    ids=["champion first", "in turn", "whoever is behind", "by all that was seen"],
)
def test_martingale_whoever_is_next(whose: Callable[[str], bool]) -> None:
    """Whoever is measured next, even where that depends on all ranks so far, the evidence stays 1 in the mean."""
    for steps in range(1, 7):
        found = [of_order(order) for order in histories(steps, whose)]
        assert len(found) == math.factorial(steps)
        assert math.fsum(found) / len(found) == pytest.approx(1.0, abs=1e-12)


def test_monotone() -> None:
    """A candidate's value that rises, or a champion's that falls, never takes evidence away."""
    chance = random.Random(1)
    for _ in range(300):
        theirs = [chance.randint(0, 9) for _ in range(chance.randint(1, 8))]
        mine = [chance.randint(0, 9) for _ in range(chance.randint(1, 8))]
        before = log_evidence(values(*theirs), values(*mine))
        at = chance.randrange(len(mine))
        raised = [*mine[:at], mine[at] + chance.randint(0, 5), *mine[at + 1 :]]
        assert log_evidence(values(*theirs), values(*raised)) >= before - 1e-9
        at = chance.randrange(len(theirs))
        lowered = [*theirs[:at], theirs[at] - chance.randint(0, 5), *theirs[at + 1 :]]
        assert log_evidence(values(*lowered), values(*mine)) >= before - 1e-9


def test_ties_speak_against_the_candidate() -> None:
    """Equal values count as if the candidate's were below; all equal is evidence against it."""
    assert log_evidence(values(1, 2), values(1, 2)) == log_evidence(values(1.1, 2.1), values(1, 2))
    assert log_evidence(values(*[3] * 5), values(*[3] * 5)) < 0


def test_several_metrics() -> None:
    """Measurements of several metrics are compared from left to right."""
    champion: list[Standing] = [(1.0, 5.0), (1.0, 6.0)]
    above, below = [(1.0, 7.0), (1.5, 0.0)], [(1.0, 4.0), (0.5, 9.0)]
    assert log_evidence(champion, above) > 0 > log_evidence(champion, below)


def test_levels_add_up() -> None:
    """All the levels that there can ever be add up to the error of the campaign, and to no more."""
    some = math.fsum(NOISY.level(reference, against) for reference in range(1, 400) for against in range(1, 400))
    assert 0.99 * NOISY.error < some < NOISY.error


@pytest.mark.parametrize(("reference", "against"), [(1, 1), (1, 500), (1, 1000), (30, 100), (100, 5)])
def test_what_the_defaults_can_prove(reference: int, against: int) -> None:
    """With the default numbers of repeats, late tests can still be passed."""
    assert look_at_blocks([], NOISY.level(reference, against), NOISY.blocks).stand is Stand.OPEN


def test_futile_is_exact() -> None:
    """A test is given up just when no continuation could pass it: never sooner, never later."""
    champion, repeats, level = values(1, 3, 5, 7), 3, 0.1
    places = (0, 2, 4, 6, 8)
    for count in range(repeats + 1):
        for seen in itertools.product(places, repeat=count):
            ends = (
                log_evidence(champion, values(*seen, *rest[:more]))
                for rest in itertools.combinations_with_replacement(places, repeats - count)
                for more in range(repeats - count + 1)
            )
            possible = any(end >= -math.log(level) for end in ends)
            assert (look(champion, values(*seen), level, repeats).stand is not Stand.FUTILE) == possible


def test_long_tests_in_logarithms() -> None:
    """Evidence beyond what a float holds is still told."""
    found = look(values(*range(800)), values(*range(1000, 1800)), 1e-9, 1000)
    assert found.stand is Stand.PROVEN
    assert found.log > 710
    assert "evidence 1e4" in found.words


def test_median() -> None:
    """The upper one of the middle two."""
    assert median(values(4, 1, 3, 2)) == (3,)


@pytest.mark.parametrize("noise", ["whole numbers with many ties", "steps of 3 deviations", FASTER])
def test_null_campaigns(noise: str) -> None:
    """Of 20 campaigns of 100 no-op candidates, no more keep one than an error of 5 % allows for, on a machine that
    drifts, too. Only ranks count, so that other noise without ties is no other case; `make bench` plays more.

    At an error of exactly 5 %, chance alone breaks this once in 100,000 times.
    """
    plays = [played.null((played.NOISES | played.DRIFTS)[noise], seed, 100) for seed in range(20)]
    assert sum(play.false for play in plays) <= at_most(20, 0.05)
    assert min(play.tests for play in plays if not play.false) > 5


def test_campaigns_with_improvements() -> None:
    """Real improvements among no-ops are kept, most of them, and what is kept beside them is within the error."""
    plays = [played.mixed(played.NOISES["gaussian noise"], seed, 200) for seed in range(10)]
    assert sum(play.false > 0 for play in plays) <= at_most(10, 0.05)
    assert sorted(play.kept for play in plays)[5] >= 15


def test_power() -> None:
    """A large improvement is nearly always proven, in few repeats; a small one needs luck or more repeats."""
    large, repeats = played.power(3, 1, 50)[:2]
    assert (large >= at_least(50, 0.99) / 50, repeats <= 16) == (True, True)
    assert played.power(3, 100, 50)[0] >= at_least(50, 0.95) / 50
    assert at_least(50, 0.35) / 50 <= played.power(1, 1, 50)[0] <= at_most(50, 0.35) / 50
    more = Certify(rule=CertifyRule.NOISY, repeats=100)
    assert played.power(1, 50, 20, more)[0] >= at_least(20, 0.75) / 20
