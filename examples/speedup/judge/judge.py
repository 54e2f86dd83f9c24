"""Calls the candidate with points that nobody has seen before, checks every count, and takes the time: the judge.

Coordinates are whole numbers, so there is one right answer. The points are drawn one call at a time from a seed that
the candidate does not know, and the seconds come from the orchestrator, which carries the call. There are seven calls,
and more where a candidate is so fast, or the machine so busy, that seven do not tell how long one takes.
"""

import array
import random
from collections import defaultdict
from typing import Any

from blastdoor_judge import BadOutput, publish, trace
from blastdoor_relay import relay

POINTS = 700
SIDE = 100_000
RADIUS = (2_000, 6_000)

Points = list[tuple[int, int]]


def drawn(rng: random.Random, count: int) -> tuple[Points, int]:
    """Half of the points are scattered, half lie in heaps, so that no fixed grid is right everywhere."""
    points: Points = []
    heaps = [(rng.randrange(SIDE), rng.randrange(SIDE)) for _ in range(8)]
    for number in range(count):
        if number % 2:
            points.append((rng.randrange(SIDE), rng.randrange(SIDE)))
        else:
            x, y = rng.choice(heaps)
            points.append((int(rng.gauss(x, SIDE / 40)), int(rng.gauss(y, SIDE / 40))))
    return points, rng.randrange(*RADIUS)


def right_count(points: Points, radius: int) -> int:
    """The judge's own way, in whole numbers only."""
    filled: dict[tuple[int, int], Points] = defaultdict(list)
    count = 0
    for x, y in points:
        column, row = x // radius, y // radius
        for place in ((a, b) for a in (column - 1, column, column + 1) for b in (row - 1, row, row + 1)):
            count += sum((x - u) ** 2 + (y - v) ** 2 <= radius * radius for u, v in filled.get(place, ()))
        filled[column, row].append((x, y))
    return count


def question(rng: random.Random) -> tuple[Any, Any, int]:
    """Points and a radius, as they are sent."""
    points, radius = drawn(rng, POINTS)
    xs, ys = (array.array("i", column) for column in zip(*points, strict=True))
    return xs, ys, radius


def check(count: Any, xs: Any, ys: Any, radius: int) -> None:
    if type(count) is not int or count != right_count(list(zip(xs, ys, strict=True)), radius):
        raise BadOutput(f"{len(xs)} points: the count is wrong")


with relay() as candidate:
    timing = candidate.time("solve", question, check)
    trace("solve", timing.seconds, summary=f"the median of {timing.calls} calls")
    publish(timing.seconds, metrics={"seconds": timing.seconds, "slowest": timing.slowest, "calls": timing.calls})
