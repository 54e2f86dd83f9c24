"""A bucket of slots."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget import RateLimit


def test_a_burst_then_a_steady_rate() -> None:
    """A new bucket is full: so many at once, then one after the other at the rate."""
    rate = RateLimit(per_second=2, burst=3)
    assert [rate.take(100.0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_asking_takes_nothing() -> None:
    """wait can be asked as often as one likes."""
    rate = RateLimit(per_second=1)
    assert [rate.wait(0), rate.wait(0)] == [0, 0]
    rate.take(0)
    assert [rate.wait(0), rate.wait(0.25), rate.wait(1), rate.wait(9)] == [1, 0.75, 0, 0]


def test_the_bucket_is_not_bottomless() -> None:
    """A long rest gives a burst and no more."""
    rate = RateLimit(per_second=1, burst=2)
    rate.take(0)
    assert [rate.take(1e9) for _ in range(3)] == [0, 0, 1]


def test_resumed() -> None:
    """A resumed campaign has to wait for its first slot, so crashing and coming back is no way around the rate."""
    rate = RateLimit(per_second=0.5, burst=10, resumed=True)
    assert rate.wait(7) == 2
    assert rate.wait(9) == 0


def test_a_clock_that_goes_back() -> None:
    """Nothing is won by it, and nobody waits for the clock to catch up with itself."""
    rate = RateLimit(per_second=1, burst=1)
    rate.take(1000)
    assert rate.wait(10) == 1
    assert rate.wait(10.5) == 0.5
    assert rate.take(11) == 0


@given(
    st.floats(0.01, 100), st.integers(1, 5), st.lists(st.floats(0, 50), min_size=1, max_size=60), st.floats(0.0, 1e6)
)
def test_never_faster_than_the_rate(per_second: float, burst: int, gaps: list[float], start: float) -> None:
    """Whoever waits as told: in no stretch of time are there more slots than the burst and the rate allow."""
    rate = RateLimit(per_second, burst)
    now, used = start, []
    for gap in gaps:
        now += gap
        used.append(now + rate.take(now))
    assert used == sorted(used) or max(a - b for a, b in pairwise(used)) < 1e-6
    for first in range(len(used)):
        for last in range(first, len(used)):
            assert last - first + 1 <= burst + (used[last] - used[first]) * per_second + 1e-3


@given(st.lists(st.floats(-1e6, 1e6), max_size=60))
def test_any_clock(times: list[float]) -> None:
    """Whatever the clock says, the wait for the next slot is no longer than the slots booked before it need."""
    rate = RateLimit(per_second=4, burst=2)
    for number, now in enumerate(times):
        assert 0 <= rate.take(now) <= number / 4 + 1e-6


@pytest.mark.parametrize("per_second", [0.0, -1.0, float("nan"), float("inf")])
def test_no_rate(per_second: float) -> None:
    """A rate that lets nothing or everything through is refused."""
    with pytest.raises(ValueError, match="is not a rate"):
        RateLimit(per_second)


def test_no_burst() -> None:
    """A bucket without room for one slot is refused."""
    with pytest.raises(ValueError, match="lets nothing through"):
        RateLimit(1, burst=0)
