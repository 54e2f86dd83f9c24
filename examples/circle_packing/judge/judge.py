"""Checks packings exactly and adds up their radii: the judge.

A number in packing.json is taken for the fraction that it is, and no root is drawn: two circles are apart when the
square of the distance of their centres is at least the square of the sum of their radii. So there is no rounding to
hide behind, and no tolerance to live on. How many circles there must be is read from the gold, not from the candidate.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from blastdoor_judge import BadOutput, judging, load_json, number, publish, trace

MOST_BYTES = 100_000


def circles_of(packing: Any, n: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Exactly n circles (x, y, r), each of them inside the unit square."""
    if not isinstance(packing, list) or len(packing) != n:
        raise BadOutput(f"must be a list of {n} circles")
    circles = []
    for i, circle in enumerate(packing):
        if not isinstance(circle, list) or len(circle) != 3:
            raise BadOutput(f"circle {i} is not [x, y, r]")
        x, y, r = (Fraction(number(value, f"circle {i}")) for value in circle)
        if r < 0:
            raise BadOutput(f"circle {i} has a negative radius")
        if not (r <= x <= 1 - r and r <= y <= 1 - r):
            raise BadOutput(f"circle {i} is not inside the unit square")
        circles.append((x, y, r))
    return circles


def sum_of_radii(packing: Any, n: int) -> float:
    circles = circles_of(packing, n)
    for i, (x, y, r) in enumerate(circles):
        for j, (u, v, s) in enumerate(circles[:i]):
            if (x - u) ** 2 + (y - v) ** 2 < (r + s) ** 2:
                raise BadOutput(f"circles {j} and {i} overlap")
    return float(sum(r for _, _, r in circles))


with judging():
    problem = json.loads(Path("gold/problem.json").read_text())
    packings = load_json("packing.json", max_bytes=MOST_BYTES)
    if not isinstance(packings, dict) or set(packings) != set(problem["instances"]):
        raise BadOutput(f"packing.json must have one packing for each of {', '.join(problem['instances'])}")
    sums = {}
    for name, n in problem["instances"].items():
        try:
            sums[name] = sum_of_radii(packings[name], n)
        except BadOutput as bad:
            raise BadOutput(f"{name}: {bad}") from None
        trace(name, sums[name])
    score = sums[problem["ranked"]]
    others = {name: value for name, value in sums.items() if name != problem["ranked"]}
    publish(score, metrics={"score": score, **others}, tasks=sums)
