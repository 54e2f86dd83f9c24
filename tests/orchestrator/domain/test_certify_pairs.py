"""The test within pairs: what it takes to be shown, and how seldom chance alone gets there."""

import itertools
import math

import pytest

from orchestrator.domain.certify import Evidence, Stand, log_evidence, look_at_pairs

WON, LOST, TIED = ((0.0,), (1.0,)), ((1.0,), (0.0,)), ((1.0,), (1.0,))


def evidence(*pairs: tuple[tuple[float, ...], tuple[float, ...]], left: int = 10, level: float = 0.025) -> Evidence:
    return look_at_pairs(pairs, level, left)


def test_mean_of_all_outcomes() -> None:
    """Were both sides alike, the evidence would be 1 on average, exactly: it is a fair bet."""
    for pairs in (1, 2, 5):
        logs = [evidence(*outcome).log for outcome in itertools.product([WON, LOST], repeat=pairs)]
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


def test_futile_is_exact() -> None:
    """It is given up exactly when winning all that is left would not do."""
    for losses, left in itertools.product(range(5), range(15)):
        best = evidence(*[LOST] * losses, *[WON] * left, left=0)
        now = evidence(*[LOST] * losses, left=left)
        assert (now.stand is Stand.FUTILE) == (best.stand is not Stand.PROVEN)


def shown(wins: float) -> float:
    """How likely one that wins this share of pairs is shown to be better within 20: all ways are added up."""
    open_ways, proven = {(0, 0): 1.0}, 0.0
    for left in range(19, -1, -1):
        before, open_ways = open_ways, {}
        for (won, lost), chance in before.items():
            for way, share in (((won + 1, lost), wins), ((won, lost + 1), 1 - wins)):
                stand = evidence(*[WON] * way[0], *[LOST] * way[1], left=left).stand
                if stand is Stand.PROVEN:
                    proven += chance * share
                elif stand is Stand.OPEN:
                    open_ways[way] = open_ways.get(way, 0.0) + chance * share
    assert not open_ways
    return proven


def test_how_often_it_is_shown() -> None:
    """One that is no better no more often than the level says, one that wins nine of ten as a rule, a loser never."""
    assert shown(0.5) == pytest.approx(0.011, abs=5e-4)
    assert shown(0.9) == pytest.approx(0.898, abs=5e-4)
    assert shown(0.1) < 1e-6
