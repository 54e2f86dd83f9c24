"""The ladder's rule, its bound, and the proof: who reads every answer of a thousand submissions gains no more."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.heldout import ATTACKS, attack
from orchestrator.domain.ladder import Answer, answer, bound, rounded

STEPS = st.sampled_from([0.001, 0.01, 0.02, 0.1, 0.25, 1.0, 3.0])
MERITS = st.floats(-1e6, 1e6)


def test_a_step_is_not_enough() -> None:
    """Only what is more than a step above the last value is answered, and then to the nearest step."""
    assert answer(0.60, 0.50, 0.1) == Answer(False, 0.5)
    assert answer(0.61, 0.50, 0.1) == Answer(True, 0.6)
    assert answer(0.66, 0.50, 0.1) == Answer(True, 0.7)
    assert answer(-5.0, 0.50, 0.1) == Answer(False, 0.5)
    assert answer(None, 0.50, 0.1) == Answer(False, 0.5)


@pytest.mark.parametrize("merit", [math.inf, -math.inf, math.nan, 1e308])
def test_what_can_not_be_counted(merit: float) -> None:
    """A score that is no number of steps is no score."""
    assert rounded(merit, 1e-9) is None
    assert answer(merit, 0.0, 1e-9) == Answer(False, 0.0)


def test_whole_steps_read_well() -> None:
    """Released values are written as people write them, zero without a sign."""
    assert rounded(0.31, 0.1) == 0.3
    assert str(rounded(-0.01, 0.1)) == "0.0"


@given(st.lists(MERITS, max_size=60), MERITS, STEPS)
def test_releases_are_a_step_apart(merits: list[float], start: float, step: float) -> None:
    """Each release is at least a step above the one before, and lies within half a step of its score."""
    released = rounded(start, step)
    assert released is not None
    for merit in merits:
        found = answer(merit, released, step)
        if found.better:
            assert found.released >= released + step * (1 - 1e-9)
            assert abs(found.released - merit) <= step / 2 * (1 + 1e-6)
        else:
            assert found.released == released
        released = found.released


def test_bound_of_a_single_query() -> None:
    """With almost nothing asked it is Hoeffding's bound over a handful of submissions; more data make it smaller."""
    one = bound(10_000, 0.5, 1, error=0.01)
    assert math.sqrt(math.log(1 / 0.01) / 20_000) < one < math.sqrt(math.log(100 / 0.01) / 20_000)
    assert bound(40_000, 0.5, 1) == pytest.approx(one / 2, rel=0.01)


def test_bound_grows_with_what_is_told() -> None:
    """A finer step, more queries and more real progress tell more; no score is ever past 1."""
    assert bound(5000, 0.05, 100) < bound(5000, 0.01, 100) < bound(5000, 0.01, 1000)
    assert bound(5000, 0.05, 100) < bound(5000, 0.05, 100, progress=0.4)
    assert bound(10, 0.001, 10_000) == pytest.approx(1.0)


@pytest.mark.parametrize("name", sorted(ATTACKS))
@pytest.mark.parametrize(("items", "step", "seed"), [(2000, 0.05, 0), (4000, 0.02, 1)])
def test_t44_a_thousand_submissions(name: str, items: int, step: float, seed: int) -> None:
    """Labels are coins, so every gain on the held-out set was read from its answers. A leaderboard of exact scores
    gives far more away than the ladder's bound; behind the ladder no submission gets past it, nor what they come to.
    """
    most = bound(items, step, 1000, error=0.01)
    held = attack(name, step, items, 1000, seed)
    naive = attack(name, 0.0, items, 1000, seed)
    assert held.last <= held.best <= most < naive.last
    assert held.last < naive.last / 4
