"""Sizes and durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.units import format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("512b", 512),
        ("1k", 1024),
        ("1KiB", 1024),
        ("1kb", 1000),
        ("1.5MiB", 1_572_864),
        (" 2 GB ", 2_000_000_000),
        ("1tib", 2**40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """Binary and decimal units, in any case, with or without a space."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "1e9", "1 2", "1xb", "1,5MiB", "0x10", "nan", "inf", "1\n2", "\u0661", "9" * 99]
)
def test_bad_sizes_say_how_to_write_one(text: str) -> None:
    """Whatever is no size gets an example of one."""
    with pytest.raises(ValueError, match="write it like 512MiB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("0.5", 0.5), ("90s", 90.0), ("1h30m", 5400.0), ("250ms", 0.25), ("1d", 86_400.0)],
)
def test_durations(text: str, seconds: float) -> None:
    """Plain seconds, or parts with their units."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "1x", "1s garbage", "1e5", "nan", "inf", "1h 30m", "9" * 99])
def test_bad_durations_say_how_to_write_one(text: str) -> None:
    """Whatever is no duration gets an example of one."""
    with pytest.raises(ValueError, match="write it like 90s"):
        parse_duration(text)


@pytest.mark.parametrize("value", [5, 1.5, None, b"1"])
def test_other_types_are_passed_on(value: object) -> None:
    """What is no text is the next validator's business."""
    assert parse_size(value) is value
    assert parse_duration(value) is value


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1000B"),
        (1023, "1023B"),
        (1024, "1KiB"),
        (1536, "1.5KiB"),
        (1_023 * 2**20, "1023MiB"),
        (512 * 2**20, "512MiB"),
        (2**44, "16TiB"),
        (2**60, "1048576TiB"),
    ],
)
def test_human_sizes(count: int, text: str) -> None:
    """The shortest form that a person would write; never in powers of ten."""
    assert format_size(count) == text


@given(st.integers(0, 2**50))
def test_human_sizes_can_be_read_back(count: int) -> None:
    """What is shown can be typed, and means the same to three digits."""
    again = parse_size(format_size(count))
    assert isinstance(again, int)
    assert abs(again - count) <= count * 0.006
