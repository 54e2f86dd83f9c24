"""Rules that end a campaign."""

from collections.abc import Callable
from functools import reduce
from operator import or_

import pytest

from orchestrator.budget import Accounts, Amounts, limits_of, stops
from orchestrator.budget.stops import Progress, Stop

CASES = [
    (stops.attempts(40), Progress(attempts_used=39), Progress(attempts_used=40), "40 of 40 attempts are used"),
    (stops.attempts(1), Progress(), Progress(attempts_used=1), "1 of 1 attempt is used"),
    (stops.spent(usd=5), Progress(usd=4_999_999), Progress(usd=5_020_000), "$5.02 of $5.00 is spent"),
    (
        stops.tokens(1_000_000),
        Progress(tokens=999_999),
        Progress(tokens=1_000_000),
        "1,000,000 of 1,000,000 tokens are used",
    ),
    (
        stops.chamber_time(seconds=7200),
        Progress(seconds=7_199_999),
        Progress(seconds=7_200_500),
        "7,200.5s of 7,200s in chambers is used",
    ),
    (
        stops.elapsed(hours=1, minutes=1, seconds=1),
        Progress(elapsed_s=3660.9),
        Progress(elapsed_s=3661),
        "3,661s of 3,661s have passed",
    ),
    (stops.target(), Progress(best=9), Progress(target_reached=True), "the target is reached"),
    (
        stops.target(2.63),
        Progress(best=2.62, target_reached=True),
        Progress(best=2.63),
        "the target is reached: 2.63, wanted 2.63 or higher",
    ),
    (
        stops.target(0.1, "lower"),
        Progress(best=0.11),
        Progress(best=-3),
        "the target is reached: -3, wanted 0.1 or lower",
    ),
    (stops.target(0.0), Progress(), Progress(best=0), "the target is reached: 0, wanted 0 or higher"),
    (stops.target(0.0), Progress(best=float("nan")), Progress(best=1), "the target is reached: 1, wanted 0 or higher"),
    (
        stops.no_improvement(attempts=20),
        Progress(since_improvement=19),
        Progress(since_improvement=21),
        "21 attempts without improvement",
    ),
    (stops.exhausted(), Progress(), Progress(exhausted=True), "the proposer has nothing left to offer"),
    (
        stops.stall_losses(),
        Progress(),
        Progress(stall_losses_exhausted=True),
        "stalls have cost as much as they may; raise --stall-losses to go on",
    ),
]


@pytest.mark.parametrize(("rule", "before", "after", "reason"), CASES)
def test_each_rule(rule: Stop, before: Progress, after: Progress, reason: str) -> None:
    """A rule is silent until its bound is reached, and then says what was reached."""
    assert rule.reason(before) is None
    assert rule.reason(after) == reason


def test_or() -> None:
    """One reason is enough, and the first one is told."""
    rule = stops.attempts(40) | stops.spent(usd=5) | stops.exhausted()
    assert rule.reason(Progress(attempts_used=39, usd=1)) is None
    assert rule.reason(Progress(usd=6_000_000)) == "$6.00 of $5.00 is spent"
    assert rule.reason(Progress(attempts_used=40, usd=6_000_000)) == "40 of 40 attempts are used"


def test_and() -> None:
    """Both are needed, and both are told."""
    rule = stops.attempts(2) & stops.no_improvement(attempts=1)
    assert rule.reason(Progress(attempts_used=2)) is None
    assert rule.reason(Progress(since_improvement=1)) is None
    both = Progress(attempts_used=2, since_improvement=1)
    assert rule.reason(both) == "2 of 2 attempts are used, and 1 attempt without improvement"


def test_nested() -> None:
    """Rules nest; & binds before |."""
    rule = stops.target() | stops.attempts(2) & stops.exhausted()
    assert rule.reason(Progress(attempts_used=2)) is None
    assert rule.reason(Progress(target_reached=True)) == "the target is reached"
    assert rule.reason(Progress(attempts_used=2, exhausted=True)) is not None
    assert ((stops.target() | stops.attempts(2)) & stops.exhausted()).reason(Progress(target_reached=True)) is None


def test_never() -> None:
    """Rules can be added one by one to one that never stops."""
    full = Progress(attempts_used=1, target_reached=True, exhausted=True)
    assert stops.never().reason(full) is None
    assert reduce(or_, [stops.exhausted()], stops.never()).reason(full) == "the proposer has nothing left to offer"
    assert (stops.never() & stops.exhausted()).reason(full) is None


def test_nothing_allowed() -> None:
    """A cap of zero stops at once."""
    assert stops.attempts(0).reason(Progress()) == "0 of 0 attempts are used"
    assert stops.spent(usd=0).reason(Progress()) == "$0.00 of $0.00 is spent"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: stops.attempts(-1),
        lambda: stops.spent(usd=-1),
        lambda: stops.spent(usd=float("nan")),
        lambda: stops.tokens(-1),
        lambda: stops.elapsed(seconds=-1),
        lambda: stops.elapsed(hours=float("inf")),
        lambda: stops.elapsed(seconds=float("nan")),
        lambda: stops.target(float("nan")),
        lambda: stops.no_improvement(attempts=0),
    ],
)
def test_bounds_that_make_no_sense(wrong: Callable[[], Stop]) -> None:
    """A rule that could never be meant is refused when it is written."""
    with pytest.raises(ValueError, match=r"."):
        wrong()


def test_progress_of_accounts() -> None:
    """What is used counts, what is only held does not; lost dollars are spent dollars."""
    accounts = Accounts(limits_of(stall_losses=1))
    accounts.reserve("a", Amounts.of(attempts=1, usd=2))
    accounts.reserve("b", Amounts.of(attempts=1, usd=2))
    accounts.reserve("c", Amounts.of(attempts=1, usd=2))
    accounts.settle("a", Amounts.of(attempts=1, usd=1, tokens=5, seconds=1.5))
    accounts.refund("b", Amounts.of(usd=1))
    assert Progress.of(accounts, elapsed_s=9.0, best=1.0, since_improvement=1) == Progress(
        attempts_used=1,
        usd=2_000_000,
        tokens=5,
        seconds=1500,
        elapsed_s=9.0,
        best=1.0,
        since_improvement=1,
        stall_losses_exhausted=True,
    )
