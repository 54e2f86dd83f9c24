"""Counts the pairs of points that are at most `radius` apart. It is right, and slow: make it faster.

The judge calls `solve` with points that it has just drawn, checks the count, and is told how long the call took by a
clock that this program cannot reach.
"""

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

Points = list[tuple[int, int]]
PARAMS = json.loads(Path(__file__).with_name("params.json").read_text())


def near(dx: int, dy: int, radius: int) -> bool:
    if PARAMS["distance"] == "root":
        return math.sqrt(dx * dx + dy * dy) <= radius
    return dx * dx + dy * dy <= radius * radius


def every_pair(points: Points, radius: int) -> int:
    count = 0
    for i, (x, y) in enumerate(points):
        for u, v in points[:i]:
            count += near(x - u, y - v, radius)
    return count


def sweep(points: Points, radius: int) -> int:
    """From left to right; what lies more than a radius behind is not looked at."""
    count = 0
    first = 0
    points = sorted(points)
    for i, (x, y) in enumerate(points):
        while points[first][0] < x - radius:
            first += 1
        for u, v in points[first:i]:
            count += near(x - u, y - v, radius)
    return count


def cells(points: Points, radius: int) -> int:
    """Each point looks only into cells that its circle can reach."""
    size: int = max(1, round(radius * PARAMS["cell"]))
    reach = -(-radius // size)
    filled: dict[tuple[int, int], Points] = defaultdict(list)
    count = 0
    for x, y in points:
        column, row = x // size, y // size
        for a in range(column - reach, column + reach + 1):
            for b in range(row - reach, row + reach + 1):
                for u, v in filled.get((a, b), ()):
                    count += near(x - u, y - v, radius)
        filled[column, row].append((x, y))
    return count


METHODS = {"every pair": every_pair, "sweep": sweep, "cells": cells}


def solve(xs: Any, ys: Any, radius: int) -> int:
    """`xs` and `ys` are arrays of whole numbers."""
    points = list(zip(xs.tolist(), ys.tolist(), strict=True))
    return METHODS[PARAMS["method"]](points, radius)
