"""Sums in whole units."""

import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget import NOTHING, Account, Amounts, limits_of, micro_dollars, milliseconds, shown
from orchestrator.budget.amounts import SLOTS, USAGE, Number

AMOUNTS = st.dictionaries(st.sampled_from([*SLOTS, *USAGE]), st.integers(0, 10**18)).map(Amounts.exact)


@pytest.mark.parametrize(
    ("usd", "units"),
    [
        (0, 0),
        (5, 5_000_000),
        (0.1, 100_000),
        (0.1 + 0.2, 300_000),
        (3 * 0.1, 300_000),
        (Decimal("0.1"), 100_000),
        (Fraction(1, 3), 333_334),
        (1e-7, 1),
        (Decimal("1.0000001"), 1_000_001),
        (123_456_789.123456, 123_456_789_123_456),
    ],
)
def test_dollars(usd: Number, units: int) -> None:
    """A sum is covered by whole micro-dollars; the noise of floats does not cost one."""
    assert micro_dollars(usd) == units


@pytest.mark.parametrize(("seconds", "units"), [(0, 0), (90, 90_000), (1.0005, 1001), (0.1 + 0.2, 300), (1e-5, 1)])
def test_seconds(seconds: float, units: int) -> None:
    """A time is covered by whole milliseconds."""
    assert milliseconds(seconds) == units


@pytest.mark.parametrize("value", [-1, -1e-6, float("nan"), float("inf"), -float("inf"), Decimal("nan")])
def test_what_is_no_amount(value: Number) -> None:
    """What is negative or not a finite number is refused, wherever it is written."""
    for convert in (micro_dollars, milliseconds):
        with pytest.raises(ValueError, match=r"is negative|is not an amount"):
            convert(value)
    with pytest.raises(ValueError, match=r"is negative|is not an amount"):
        Amounts.of(usd=value)
    with pytest.raises(ValueError, match=r"is negative|is not an amount"):
        limits_of(stall_losses=value)


@pytest.mark.parametrize(
    "entries",
    [
        ((Account.TOKENS, -1),),
        ((Account.TOKENS, 1.0),),
        ((Account.TOKENS, True),),
        ((Account.TOKENS, "1"),),
        ((Account.TOKENS, 1), (Account.TOKENS, 2)),
        ((Account.STALL_LOSSES, 1),),
    ],
)
def test_refused_entries(entries: tuple[tuple[Account, int], ...]) -> None:
    """Only whole numbers from zero on, an account once, and nothing is ever taken from the memo of losses."""
    with pytest.raises(ValueError, match=r"negative|whole number|twice|memo"):
        Amounts(entries)


def test_zero_is_left_out() -> None:
    """Equal sums are equal, however they were written, and an empty one is false."""
    one = Amounts.exact({Account.USD: 0, Account.TOKENS: 3, Account.ATTEMPTS: 1})
    assert one == Amounts.of(attempts=1, tokens=3)
    assert hash(one) == hash(Amounts.of(attempts=1, tokens=3))
    assert one.entries == ((Account.ATTEMPTS, 1), (Account.TOKENS, 3))
    assert one[Account.USD] == 0
    assert not Amounts.of(usd=0)
    assert Amounts.of(usd=0) == NOTHING


@given(AMOUNTS, AMOUNTS)
def test_arithmetic(one: Amounts, two: Amounts) -> None:
    """Adding and taking away undo each other; less-or-equal holds in every account or not at all."""
    assert one + two == two + one
    assert (one + two) - two == one
    assert one <= one + two
    assert (one <= two) == (one.over(two) == NOTHING)
    assert one + two.over(one) == two + one.over(two)
    assert one.only(SLOTS) + one.only(USAGE) == one


@given(AMOUNTS)
def test_rows(one: Amounts) -> None:
    """A row is plain JSON and comes back exact."""
    assert Amounts.from_row(json.loads(json.dumps(one.as_row()))) == one


@pytest.mark.parametrize("row", [{"cents": 1}, {"usd": 1.0}, {"usd": None}, {"usd": -1}, {"stall losses": 1}])
def test_rows_that_are_none(row: dict[str, object]) -> None:
    """An unknown account or a number that is not whole is refused, not guessed."""
    with pytest.raises(ValueError, match=r"valid Account|whole|negative|memo"):
        Amounts.from_row(row)


def test_less_than_nothing() -> None:
    """More cannot be taken away than there is."""
    with pytest.raises(ValueError, match="tokens: -1 is negative"):
        Amounts.of(tokens=1) - Amounts.of(tokens=2)


def test_limits() -> None:
    """A cap of zero is a cap, None is none; what is under a unit is not given away."""
    limits = limits_of(attempts=0, usd=Decimal("1.0000009"), seconds=1.9999, stall_losses=0.5)
    assert limits == {
        Account.ATTEMPTS: 0,
        Account.USD: 1_000_000,
        Account.SECONDS: 1999,
        Account.STALL_LOSSES: 500_000,
    }
    with pytest.raises(ValueError, match="attempts: -1 is negative"):
        limits_of(attempts=-1)


@pytest.mark.parametrize(
    ("account", "units", "text"),
    [
        (Account.USD, 5_000_000, "$5.00"),
        (Account.USD, 1_234_500_001, "$1,234.500001"),
        (Account.STALL_LOSSES, 1, "$0.000001"),
        (Account.USD, 120_000, "$0.12"),
        (Account.SECONDS, 90_000, "90s"),
        (Account.SECONDS, 5_400_050, "5,400.05s"),
        (Account.TOKENS, 1200, "1,200 tokens"),
        (Account.ATTEMPTS, 1, "1 attempt"),
        (Account.TUNES, 0, "0 tunes"),
        (Account.COMBINATION, 2, "2 combination attempts"),
        (Account.CONTROL, 1, "1 control attempt"),
    ],
)
def test_shown(account: Account, units: int, text: str) -> None:
    """People read dollars and seconds, exact to the unit."""
    assert shown(account, units) == text


def test_sums_are_readable() -> None:
    """A sum names what is in it, and says when nothing is."""
    assert str(Amounts.of(usd=0.5, attempts=1, seconds=3)) == "1 attempt, $0.50, 3s"
    assert str(NOTHING) == "nothing"
