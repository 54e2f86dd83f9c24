"""The Ladder (Blum and Hardt, 2015): what may be said about a score on a held-out split.

Only a score that beats the last released value by more than a step is answered with a value, and that one is rounded
to whole steps; everything else gets the old value again. So a value is released at most once a step, and between two
releases all that anybody learns is "no better": a long campaign can neither fit the split nor read it bit by bit.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

# Beyond it, whole steps of a float are no longer exact.
_MOST_STEPS = 2**53


@dataclass(frozen=True)
class Answer:
    better: bool
    released: float


def rounded(merit: float, step: float) -> float | None:
    """To the nearest whole number of steps; None for what cannot be counted in them."""
    steps = merit / step
    if not math.isfinite(steps) or abs(steps) > _MOST_STEPS:
        return None
    # In decimals, so that three steps of 0.1 are 0.3.
    return float(Decimal(repr(step)) * round(steps)) + 0.0


def answer(merit: float | None, released: float, step: float) -> Answer:
    """What may be said of a merit (more is better; None where there is no score), given what was released last."""
    value = None if merit is None or not merit > released + step else rounded(merit, step)
    return Answer(False, released) if value is None else Answer(True, value)


def is_worse(merit: float | None, released: float, step: float) -> bool:
    """The other question, of one bit as well: whether a merit is more than a step below what was released. No score is
    answered like a low one, and nothing is released.
    """
    return merit is None or merit < released - step


def bound(items: int, step: float, queries: int, *, error: float = 0.01, progress: float = 0.0) -> float:
    """How far at most, but with probability `error`, any submission's mean over the items lies above its true mean.

    Scores of single items are in [0, 1] and drawn independently; a submitter reads every answer of the ladder and
    nothing else of the split. `progress` is how far true scores rise above the baseline's: 0 for one who only attacks.

    An answer depends on the split only through the ladder, so whatever is submitted is fixed by what was released
    when. Until somebody gains g, the baseline's value is one of 2g/step + 2, and at most m = (progress + 2g)/step + 1
    values can be released after it: sum over j of C(queries, j) C(m, j) histories, each followed by one submission a
    query. Hoeffding for each of them and a union over all give the g for which the sum of failures is `error`.
    """
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        gain = (low + high) / 2
        enough = _log_submissions(gain, step, queries, progress) - 2 * items * gain**2 <= math.log(error)
        low, high = (low, gain) if enough else (gain, high)
    return high


def _log_submissions(gain: float, step: float, queries: int, progress: float) -> float:
    """The logarithm of how many different submissions there can be before anybody gains more than that."""
    values = math.floor((progress + 2 * gain) / step) + 1
    histories = math.comb(queries + values, values)  # the sum over j, by Vandermonde's identity
    # The last 1 is the baseline, which may be as far below its true mean.
    return math.log(histories * (queries + 1) * (math.floor(2 * gain / step) + 2) + 1)
