"""Numbers as they are written, and steps from one to the next."""

import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.proposers.operators.numbers import LONGEST, continued, is_real, read_number, stepped


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("12", 12), ("-3", -3), ("1_000", 1000), ("0.5", 0.5), ("1e-3", 1e-3), (".5", 0.5), ("2.", 2.0)],
)
def test_numbers_are_read(text: str, value: float) -> None:
    """With their kind: a whole number stays whole."""
    assert read_number(text) == value
    assert isinstance(read_number(text), float) == is_real(text)


@pytest.mark.parametrize(
    "text", ["", "x", "0x1f", "007", "1e400", "nan", "inf", "1j", "1__0.", "9" * (LONGEST + 1), "-"]
)
def test_others_are_not(text: str) -> None:
    """Neither what is no decimal number, nor what has no end."""
    assert read_number(text) is None


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


def test_small_sizes_make_small_steps() -> None:
    """The size is about the share by which a real number changes; some steps are far larger all the same."""

    def shares(size: float) -> list[float]:
        new = [float(stepped(0.5, random.Random(seed), size) or 0) for seed in range(400)]
        return [abs(math.log(abs(value) / 0.5)) for value in new]

    assert 0.05 < median(shares(0.2)) < 0.3
    assert 0.0005 < median(shares(0.002)) < 0.003
    assert max(shares(0.002)) > 0.1


def test_going_on() -> None:
    """As far again in the same direction: by the same factor for real numbers, at least by one for whole ones."""
    assert continued(1.0, 2.0, 1.0) == "4.0"
    assert continued(4.0, 2.0, 1.0) == "1.0"
    assert continued(0.0, 0.5, 1.0) == "1.0"
    assert continued(3, 4, 0.5) == "5"
    assert continued(10, 6, 1.0) == "2"
    assert continued(1e300, 1e307, 4.0) is None
