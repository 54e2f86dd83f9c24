"""Numbers as they are written, and steps from one to the next."""

import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.proposers.operators.numbers import LONGEST, continued, is_real, read_number, stepped

NO = ("", "x", "0x1f", "007", "1e400", "nan", "inf", "1j", "1__0.", "9" * (LONGEST + 1), "-")


def test_numbers_are_read() -> None:
    """With their kind: a whole number stays whole. What is no decimal number, or has no end, is none."""
    for text, value in {
        "0": 0,
        "12": 12,
        "-3": -3,
        "1_000": 1000,
        "0.5": 0.5,
        "1e-3": 1e-3,
        ".5": 0.5,
        "2.": 2.0,
    }.items():
        assert read_number(text) == value
        assert isinstance(read_number(text), float) == is_real(text)
    assert [text for text in NO if read_number(text) is not None] == []


@given(st.one_of(st.integers(-(10**12), 10**12), st.floats(-1e12, 1e12)), st.integers(), st.floats(1e-4, 2.0))
def test_a_step_is_another_number_of_the_same_kind(value: float, seed: int, size: float) -> None:
    """Always one that can be read again."""
    new = stepped(value, random.Random(seed), size)
    if new is None:
        assert abs(value) > 1e11 or abs(value) < 1e-290
        return
    assert read_number(new) is not None
    assert read_number(new) != value
    assert isinstance(read_number(new), int) == isinstance(value, int)


def test_going_on() -> None:
    """As far again in the same direction: by the same factor for real numbers, at least by one for whole ones."""
    assert continued(1.0, 2.0, 1.0) == "4.0"
    assert continued(4.0, 2.0, 1.0) == "1.0"
    assert continued(0.0, 0.5, 1.0) == "1.0"
    assert continued(3, 4, 0.5) == "5"
    assert continued(10, 6, 1.0) == "2"
    assert continued(1e300, 1e307, 4.0) is None
