"""Free endings are few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget.refunds import Charge, Quarantine, RefundPolicy, Requeue

POLICY = RefundPolicy(stalls=3, refunds_per_lineage=5, backoff_s=2, backoff_cap_s=10)


def test_a_charged_ending_is_not_run_again() -> None:
    """However few refunds there were, an ending that is not free is settled."""
    decision = POLICY.decide(ending_is_free=False, stalls_of_attempt=9, refunds_of_lineage=9, draw=0)
    assert decision == Charge()


@pytest.mark.parametrize(
    ("stalls", "refunds", "decision"),
    [
        (1, 1, Requeue(1.0)),
        (2, 2, Requeue(2.0)),
        (0, 4, Requeue(5.0)),
        (3, 3, Quarantine("its stalls: 3, with a limit of 3")),
        (0, 5, Quarantine("free endings of its lineage: 5, with a limit of 5")),
        (4, 9, Quarantine("its stalls: 4, with a limit of 3")),
    ],
)
def test_decisions(stalls: int, refunds: int, decision: Requeue | Quarantine) -> None:
    """Run again, later each time, until the limit is reached; then quarantine, with the reason."""
    assert (
        POLICY.decide(ending_is_free=True, stalls_of_attempt=stalls, refunds_of_lineage=refunds, draw=0.0) == decision
    )


@given(st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_back_off(endings: int, draw: float) -> None:
    """The wait is never shorter than half of its step, never over the cap, and never shrinks with the same draw."""
    wait = POLICY.backoff(endings, draw)
    assert 1 <= wait <= 10
    assert POLICY.backoff(endings + 1, draw) >= wait


@pytest.mark.parametrize("draw", [-0.1, 1.0, float("nan")])
def test_a_draw_is_a_fraction(draw: float) -> None:
    """Chance comes from outside, and a wrong draw is not silently used."""
    with pytest.raises(ValueError, match="is not in"):
        POLICY.backoff(1, draw)


@pytest.mark.parametrize(
    "wrong",
    [
        {"stalls": 0},
        {"refunds_per_lineage": 0},
        {"backoff_s": -1},
        {"backoff_s": 9, "backoff_cap_s": 8},
        {"backoff_cap_s": float("inf")},
        {"backoff_s": float("nan")},
    ],
)
def test_policies_that_make_no_sense(wrong: dict[str, int]) -> None:
    """A policy without limits or with an endless wait is refused."""
    with pytest.raises(ValueError, match=r"counted from 1|back-off"):
        RefundPolicy(**wrong)
