"""The bounds that tests of chance hold their counts against."""

import math
from fractions import Fraction

import pytest

from tests.chance import at_least, at_most


def beyond(draws: int, probability: Fraction, bound: int) -> Fraction:
    """How likely more than so many are, exactly."""
    return sum(
        (
            math.comb(draws, it) * probability**it * (1 - probability) ** (draws - it)
            for it in range(bound + 1, draws + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("draws", [1, 20, 60, 500])
@pytest.mark.parametrize("probability", [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("error", [Fraction(1, 100), Fraction(1, 100_000)])
def test_the_bound_is_exact(draws: int, probability: Fraction, error: Fraction) -> None:
    """Sound code breaks the bound with at most the error, and would break the next lower one more often; so many of one
    kind are so many of the other.
    """
    bound = at_most(draws, float(probability), float(error))
    assert beyond(draws, probability, bound) <= error
    assert bound == 0 or beyond(draws, probability, bound - 1) > error
    assert at_least(draws, float(1 - probability), float(error)) == draws - bound
