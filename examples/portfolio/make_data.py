"""Draws the instances: four kinds, each of which suits other solvers. The same numbers every time."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

EACH = 6


def uniform(draw: random.Random) -> tuple[int, list[int]]:
    return 150, [draw.randint(20, 100) for _ in range(60)]


def triplets(draw: random.Random) -> tuple[int, list[int]]:
    """Three items fill a bin to the brim: taking the largest first goes wrong."""
    sizes = []
    for _ in range(20):
        one = draw.randint(380, 490)
        other = draw.randint(250, (1000 - one) // 2)
        sizes += [one, other, 1000 - one - other]
    draw.shuffle(sizes)
    return 1000, sizes


def two_sizes(draw: random.Random) -> tuple[int, list[int]]:
    sizes = [draw.choice((draw.randint(45, 55), draw.randint(15, 25))) for _ in range(70)]
    return 120, sizes


def near_thirds(draw: random.Random) -> tuple[int, list[int]]:
    return 300, [draw.randint(85, 118) for _ in range(60)]


KINDS: dict[str, Callable[[random.Random], tuple[int, list[int]]]] = {
    "uniform": uniform,
    "triplets": triplets,
    "two-sizes": two_sizes,
    "near-thirds": near_thirds,
}


def instances(draw: random.Random) -> list[dict[str, Any]]:
    found = []
    for kind, make in KINDS.items():
        for number in range(1, EACH + 1):
            capacity, sizes = make(draw)
            found.append({"name": f"{kind}-{number}", "capacity": capacity, "sizes": sizes})
    return found


if __name__ == "__main__":
    for seed, split in enumerate(("dev", "held"), 1):
        text = json.dumps(instances(random.Random(seed)), separators=(",", ":"))
        Path(__file__).with_name("inputs").joinpath(split, "instances.json").write_text(text + "\n")
