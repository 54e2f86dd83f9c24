"""Calls the candidate with points that nobody has seen before, checks every count, and takes the time: the judge.

Coordinates are whole numbers, so there is one right answer. The points are drawn one call at a time from a seed that
the candidate does not know, and the seconds come from the orchestrator, which carries the call.
"""

import array
import random
import statistics
from collections import defaultdict
from typing import Any

from blastdoor_judge import BadOutput, publish, trace
from blastdoor_relay import relay

CALLS = 7
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


def called(candidate: Any, points: Points, radius: int) -> Any:
    xs, ys = (array.array("i", column) for column in zip(*points, strict=True))
    reply = candidate.call("solve", xs, ys, radius)
    if type(reply.value) is not int or reply.value != right_count(points, radius):
        raise BadOutput(f"{len(points)} points: the count is wrong")
    return reply


with relay() as candidate:
    called(candidate, *drawn(candidate.rng(), 50))  # what is loaded at the first call is not timed
    times = []
    for number in range(CALLS):
        times.append(called(candidate, *drawn(candidate.rng(), POINTS)).net)
        trace(str(number), times[-1])
    seconds = statistics.median(times)
    publish(seconds, metrics={"seconds": seconds, "slowest": max(times)})
