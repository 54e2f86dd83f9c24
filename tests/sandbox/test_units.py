"""Sizes and durations as people write them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.units import format_size, parse_duration, parse_size

SIZES = {"0": 0, "512": 512, "512b": 512, "1k": 1024, "1KiB": 1024, "1kb": 1000, "1.5MiB": 1_572_864}
DURATIONS = {"90": 90.0, "0.5": 0.5, "90s": 90.0, "1h30m": 5400.0, "250ms": 0.25, "1d": 86_400.0}
SHOWN = {"0B": 0, "999B": 999, "1000B": 1000, "1023B": 1023, "1KiB": 1024, "1.5KiB": 1536, "1023MiB": 1_023 * 2**20}


def test_what_people_write() -> None:
    """Binary and decimal units, in any case, with or without a space; plain seconds, or parts with their units. What is
    no text is the next validator's business. A size is shown in its shortest form, never in powers of ten.
    """
    assert {text: parse_size(text) for text in SIZES} == SIZES
    assert (parse_size(" 2 GB "), parse_size("1tib")) == (2_000_000_000, 2**40)
    assert {text: parse_duration(text) for text in DURATIONS} == DURATIONS
    for value in (5, 1.5, None, b"1"):
        assert parse_size(value) is parse_duration(value) is value
    more = {"512MiB": 512 * 2**20, "16TiB": 2**44, "1048576TiB": 2**60}
    for text, count in {**SHOWN, **more}.items():
        assert format_size(count) == text


NO_SIZES = ("", "MiB", "-1", "1e9", "1 2", "1xb", "1,5MiB", "0x10", "nan", "inf", "1\n2", "\u0661", "9" * 99)
NO_DURATIONS = ("", "s", "-1s", "1x", "1s garbage", "1e5", "nan", "inf", "1h 30m", "9" * 99)


@pytest.mark.parametrize(
    ("parse", "texts", "how"),
    [(parse_size, NO_SIZES, "write it like 512MiB"), (parse_duration, NO_DURATIONS, "write it like 90s")],
)
def test_what_is_none_is_told_how_to_write_one(
    parse: Callable[[object], object], texts: tuple[str, ...], how: str
) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=how):
            parse(text)


@given(st.integers(0, 2**50))
def test_human_sizes_can_be_read_back(count: int) -> None:
    """What is shown can be typed, and means the same to three digits."""
    again = parse_size(format_size(count))
    assert isinstance(again, int)
    assert abs(again - count) <= count * 0.006
