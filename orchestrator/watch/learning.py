"""A floor from an agent's own past, with a false-alarm rate that can be stated.

Each past stream that ended well gives one number: the highest floor that would have let it live. If the next healthy
stream is drawn like those (exchangeable with them), it lies below the k-th smallest of n such numbers with a chance of
at most k/(n+1), however the rates are distributed. So the k-th smallest with k = ⌊rate·(n+1)⌋ is a floor that ends a
healthy stream by its rate with at most that chance. With fewer than 1/rate - 1 streams there is no such floor, and the
configured one stays.

The learnt floor is never more than five times the configured one, which can only lower the chance; and never less than
a tenth of it, because without a floor no silence would be found. Where that bound acts, no rate is promised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

HIGHEST = 5.0
LEAST = 0.1


@dataclass(frozen=True)
class Learnt:
    """`alarm_rate` is None where nothing is promised: too few streams, or a bound that acts. `why` is one line."""

    floor: float
    streams: int
    alarm_rate: float | None
    why: str


def learn_floor(lowest: Sequence[float], configured: float, alarm_rate: float) -> Learnt:
    """`lowest` has one number a stream that ended well."""
    count = len(lowest)
    # A product such as 0.1 * 30 may fall short of its whole number by a rounding.
    rank = math.floor(alarm_rate * (count + 1) + 1e-9)
    if not configured:
        return Learnt(0.0, count, None, "there is no floor, so none is learnt")
    if rank < 1:
        needed = math.ceil(1 / alarm_rate - 1e-9) - 1
        return Learnt(configured, count, None, f"{count} of the {needed} streams that it takes to learn a floor")
    found = sorted(lowest)[rank - 1]
    if found < LEAST * configured:
        why = f"{count} streams say {found:.3g}, less than a tenth of the configured floor"
        return Learnt(LEAST * configured, count, None, why)
    floor = min(found, HIGHEST * configured)
    return Learnt(floor, count, rank / (count + 1), f"learnt from {count} streams that ended well")
