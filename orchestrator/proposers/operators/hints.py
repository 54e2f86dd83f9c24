"""What operators are told of the past, and how they choose by it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Donor:
    """The same file in another node that did well, and in what that one was built on, where it is there."""

    node: str
    data: bytes
    base: bytes | None = None


def _nobody() -> Sequence[Donor]:
    return ()


@dataclass(frozen=True)
class Hints:
    """Of one file. `step` is the size of steps for a class of numbers, `favour` what a function was worth so far.

    `dull` is how little came of changing a number there. `before` is the file one step earlier, where that step made
    it better. `heat` is what makes statements between two bytes worth leaving out.
    """

    step: Callable[[str], float] = lambda _: 0.3
    favour: Callable[[str], float] = lambda _: 1.0
    dull: Callable[[str, str], float] = lambda _owner, _number: 1.0
    donors: Callable[[], Sequence[Donor]] = _nobody
    before: bytes | None = None
    heat: Callable[[int, int], float] = lambda _start, _end: 1.0


def pick(rng: random.Random, things: Sequence[T], weight: Callable[[T], float]) -> T | None:
    """One of them, by weight; None where there is none."""
    weights = [max(0.0, weight(thing)) for thing in things]
    if not things or sum(weights) <= 0.0:
        return None
    return rng.choices(things, weights)[0]
