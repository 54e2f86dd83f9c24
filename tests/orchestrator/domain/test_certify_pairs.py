"""The test within pairs: what it takes to be shown, and how seldom chance alone gets there."""

import itertools
import math
import random

import pytest

from orchestrator.domain.certify import Evidence, Stand, log_evidence, look_at_pairs
from tests.chance import at_least

WON, LOST, TIED = ((0.0,), (1.0,)), ((1.0,), (0.0,)), ((1.0,), (1.0,))


def evidence(*pairs: tuple[tuple[float, ...], tuple[float, ...]], left: int = 10, level: float = 0.025) -> Evidence:
    return look_at_pairs(pairs, level, left)


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_mean_of_all_outcomes(pairs: int) -> None:
    """Were both sides alike, the evidence would be 1 on average, exactly: it is a fair bet."""
    every = itertools.product([WON, LOST], repeat=pairs)
    logs = [evidence(*outcome).log for outcome in every]
    assert sum(map(math.exp, logs)) / 2**pairs == pytest.approx(1.0)


def test_one_pair_is_the_same_rule() -> None:
    """One pair is what the rank test makes of one measurement on each side."""
    assert evidence(WON).log == pytest.approx(log_evidence([(0.0,)], [(1.0,)]))
    assert evidence(LOST).log == pytest.approx(log_evidence([(1.0,)], [(0.0,)]))


def test_ties_say_nothing() -> None:
    """A pair without a winner changes nothing, however many there are."""
    assert evidence(WON, TIED, TIED).log == evidence(WON).log
    assert evidence(((), ())).log == pytest.approx(0.0)


def test_seven_wins_do_at_first() -> None:
    """With half of an error of 0.05, seven pairs that are all won are enough, and six are not."""
    assert evidence(*[WON] * 7).stand is Stand.PROVEN
    assert evidence(*[WON] * 6).stand is Stand.OPEN


@pytest.mark.parametrize("losses", range(5))
def test_futile_is_exact(losses: int) -> None:
    """It is given up exactly when winning all that is left would not do."""
    for left in range(15):
        best = evidence(*[LOST] * losses, *[WON] * left, left=0)
        now = evidence(*[LOST] * losses, left=left)
        assert (now.stand is Stand.FUTILE) == (best.stand is not Stand.PROVEN)


@pytest.mark.parametrize("ties", [0.0, 0.6])
def test_looking_after_every_pair(ties: float) -> None:
    """Of 4,000 challengers that are no better, looked at after each of 20 pairs, no more pass than the level says.

    Truly 1.1 % do, as adding up all ways shows, fewer with ties: chance alone breaks this once in 10^12 times.
    """
    level = 0.025
    passed = sum(adopted(random.Random(f"null {ties} {seed}"), 0.5, ties, level) for seed in range(4000))
    assert passed / 4000 <= level


def test_power() -> None:
    """One that wins nine of ten pairs is found within 20 as a rule, one that loses nine of ten never.

    Adding up all ways gives 0.898 and 10^-7: chance alone breaks the first once in 100,000 times, the second in 5,000.
    """
    found = sum(adopted(random.Random(seed), 0.9, 0.0, 0.025) for seed in range(500))
    assert found >= at_least(500, 0.898)
    assert not any(adopted(random.Random(seed), 0.1, 0.0, 0.025) for seed in range(2000))


def adopted(draw: random.Random, wins: float, ties: float, level: float) -> bool:
    pairs: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    for left in range(19, -1, -1):
        pairs.append(TIED if draw.random() < ties else WON if draw.random() < wins else LOST)
        found = look_at_pairs(pairs, level, left)
        if found.stand is not Stand.OPEN:
            return found.stand is Stand.PROVEN
    return False
