"""Steps of numbers as they are written in a file: small and large ones, around a size that adapts.

Real numbers move by a factor, so that 1e-9 and 1000 are searched alike; whole ones by at least one.
"""

import math
import random
import re

LONGEST = 40  # characters; longer ones are data, and some cannot even be read in sensible time
FIRST_STEP = 0.5
LEAST_STEP, MOST_STEP = 1e-4, 2.0
_DECIMAL = re.compile(r"(?:0|[1-9][0-9_]*)\Z")
_REAL = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9_]+)?\Z")
_MOST = 10**15

Number = int | float


def read_number(text: str) -> Number | None:
    """A decimal number of a sensible length, else None."""
    if len(text) > LONGEST:
        return None
    try:
        if _DECIMAL.match(text.removeprefix("-")):
            return int(text)
        value = float(text) if is_real(text) and _REAL.match(text) else math.inf
    except ValueError:  # like 1__0
        return None
    return value if math.isfinite(value) else None


def is_real(text: str) -> bool:
    return any(character in text for character in ".eE")


def stepped(value: Number, rng: random.Random, size: float) -> str | None:
    """Another number near this one, as text; now and then far from it. None where there is none."""
    size = min(MOST_STEP, size * math.exp(rng.gauss(0.0, 0.7)))
    if rng.random() < 0.05:
        size = max(size, 1.0)
    new = _whole(value, rng, size) if isinstance(value, int) else _real(value, rng, size)
    return written(new, value, size)


def continued(old: Number, new: Number, share: float) -> str | None:
    """As far again as from the old to the new, or that share of it."""
    if isinstance(new, int):
        way = share * (new - old)
        further: Number = new + (round(way) or int(math.copysign(1, way)))
    elif old and new / old > 0:
        further = new * math.exp(min(20.0, max(-20.0, share * math.log(new / old))))
    else:
        further = new + share * (new - old)
    return written(further, new, abs(share) * 0.1)


def written(new: Number, old: Number, size: float) -> str | None:
    """With as many digits as a step of that size can tell apart; None for what is the old, or beyond all sense."""
    if not math.isfinite(new) or abs(new) > max(_MOST, abs(old)):
        return None
    if isinstance(new, int):
        return str(new) if new != old else None
    least = max(2, 2 - math.floor(math.log10(max(size, LEAST_STEP))))
    for digits in (least, least + 3, 15):
        text = repr(float(f"{new:.{digits}g}"))
        if float(text) != old:
            return text
    return None


def _whole(value: int, rng: random.Random, size: float) -> int:
    if abs(value) <= 2 or rng.random() < 0.35:
        return value + rng.choice((-1, 1) if value > 0 else (1, 1, -1))
    new = round(value * math.exp(rng.gauss(0.0, size)))
    return new if new != value else value + rng.choice((-1, 1))


def _real(value: float, rng: random.Random, size: float) -> float:
    if value == 0.0:
        return rng.gauss(0.0, size)
    if rng.random() < 0.03:
        return -value
    return value * math.exp(rng.gauss(0.0, size))
