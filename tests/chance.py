"""How far chance alone takes a count: exact tails of the binomial distribution.

A test of chance counts how often something came of many independent draws, and holds the count against a bound that
sound code breaks with a probability of at most ERROR. Draws come from seeds, so a run gives the same count anywhere
but for the last bit of a logarithm; the bound is for the day when code or seeds change.
"""

import math

ERROR = 1e-5


def at_most(draws: int, probability: float, error: float = ERROR) -> int:
    """The smallest bound that more of the draws than it break with at most this error."""
    above, bound = 0.0, draws
    while bound and above + _exactly(draws, probability, bound) <= error:
        above += _exactly(draws, probability, bound)
        bound -= 1
    return bound


def at_least(draws: int, probability: float, error: float = ERROR) -> int:
    """The largest bound that fewer of the draws than it break with at most this error."""
    return draws - at_most(draws, 1 - probability, error)


def _exactly(draws: int, probability: float, count: int) -> float:
    if probability in (0.0, 1.0):
        return float(count == draws * probability)
    ways = math.lgamma(draws + 1) - math.lgamma(count + 1) - math.lgamma(draws - count + 1)
    return math.exp(ways + count * math.log(probability) + (draws - count) * math.log1p(-probability))
