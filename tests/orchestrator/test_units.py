"""Money, rates and durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.units import format_duration, parse_money, parse_rate
from sandbox.units import parse_duration


@pytest.mark.parametrize(
    ("text", "dollars"), [("$5", 5.0), ("5", 5.0), ("$0.50", 0.5), ("$ 12.345678", 12.345678), ("$1,000.50", 1000.5)]
)
def test_money(text: str, dollars: float) -> None:
    """Dollars with or without the sign, and with thousands set apart."""
    assert parse_money(text) == dollars


@pytest.mark.parametrize("text", ["", "$", "five", "-$5", "$-5", "5€", "$1,00", "$1.2.3", "$nan", "1e3"])
def test_not_money(text: str) -> None:
    """What is not a sum of money is refused with an example of one."""
    with pytest.raises(ValueError, match=r"write it like \"\$5\""):
        parse_money(text)


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("30/min", 0.5), ("2/s", 2.0), ("100/h", 100 / 3600), ("1 / day", 1 / 86400), ("1.5/minute", 0.025)],
)
def test_rate(text: str, per_second: float) -> None:
    """So many in a unit of time, counted by the second."""
    assert parse_rate(text) == per_second


@pytest.mark.parametrize("value", ["30", 30, 0.5, True, "30/fortnight", "/min", "x/min", "-1/s", None, ["1/s"]])
def test_not_a_rate(value: object) -> None:
    """A number without its unit of time is refused like any other text."""
    with pytest.raises(ValueError, match='write it like "30/min"'):
        parse_rate(value)


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_rate_is_stored_without_loss(rate: float) -> None:
    """The form in which a rate is stored reads back as the very same number."""
    assert parse_rate(f"{rate!r}/s") == rate


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "0.5s"), (90, "1m30s"), (5400, "1h30m"), (86_400 * 7, "7d"), (3600, "1h")]
)
def test_durations_are_shown_as_they_are_written(seconds: float, text: str) -> None:
    """The shortest form, which reads back as the same."""
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds
