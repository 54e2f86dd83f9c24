"""Packs circles into the unit square so that the sum of their radii is large: the candidate.

Circles start on a layout. At every step all grow a little, and push each other and the walls back where they overlap.
As the growth fades, the packing settles. It may be changed in any way, as long as it leaves packing.json.
"""

import json
import math
import os
import random
from pathlib import Path
from typing import Any

MARGIN = 1e-12  # the judge calculates exactly: leave more room than a rounding error takes
SLACK, REFRESH = 0.1, 10  # pairs further apart are looked at again only after so many steps

Points = list[tuple[float, float]]
Pairs = list[tuple[int, int]]


def square(n: int, rows: int) -> Points:
    """Rows of equal length; the last one may have gaps."""
    columns = math.ceil(n / rows)
    return [((i % columns + 0.5) / columns, (i // columns + 0.5) / rows) for i in range(n)]


def hexagonal(n: int, rows: int) -> Points:
    """Longer and shorter rows, so that circles of one lie over the gaps of the next."""
    lengths = [n // rows + (row < n % rows) for row in range(rows)]
    lengths = [length for length in lengths[::2] + lengths[1::2] if length]
    height = len(lengths)
    return [
        ((column + 0.5) / length, (row + 0.5) / height)
        for row, length in enumerate(lengths)
        for column in range(length)
    ]


def rings(n: int) -> Points:
    """A sunflower: each at the golden angle from the one before, and further out."""
    polar = [(2.399963 * i, 0.45 * math.sqrt((i + 0.5) / n)) for i in range(n)]
    return [(0.5 + reach * math.cos(angle), 0.5 + reach * math.sin(angle)) for angle, reach in polar]


def layout(n: int, params: dict[str, Any], rng: random.Random) -> Points:
    match params["layout"]:
        case "square":
            return square(n, params["rows"])
        case "hexagonal":
            return hexagonal(n, params["rows"])
        case "rings":
            return rings(n)
    return [(rng.random(), rng.random()) for _ in range(n)]


def near_pairs(x: list[float], y: list[float], r: list[float]) -> Pairs:
    """Those that may touch within the next few steps."""
    pairs = []
    for i in range(len(r)):
        for j in range(i):
            reach = r[i] + r[j] + SLACK
            dx, dy = x[i] - x[j], y[i] - y[j]
            if dx * dx + dy * dy < reach * reach:
                pairs.append((i, j))
    return pairs


def push_apart(x: list[float], y: list[float], r: list[float], give: float, pairs: Pairs) -> None:
    """Where two overlap, both move away and both shrink; `give` is how much they shrink rather than move."""
    share = 0.5 / (1.0 + give)
    for i, j in pairs:
        reach = r[i] + r[j]
        dx = x[i] - x[j]
        dy = y[i] - y[j]
        squared = dx * dx + dy * dy
        if squared < reach * reach:
            distance = math.sqrt(squared) or 1e-9
            overlap = (reach - distance) * share
            dx *= overlap / distance
            dy *= overlap / distance
            overlap *= give
            x[i] += dx
            y[i] += dy
            r[i] -= overlap
            x[j] -= dx
            y[j] -= dy
            r[j] -= overlap


def push_inside(place: list[float], r: list[float], give: float) -> None:
    """The same against the two walls of one direction."""
    for i, at in enumerate(place):
        radius = r[i]
        if at < radius:
            moved = (radius - at) / (1.0 + give)
            place[i] = at + moved
        elif at > 1.0 - radius:
            moved = (at - 1.0 + radius) / (1.0 + give)
            place[i] = at - moved
        else:
            continue
        r[i] = radius - moved * give


def fit(x: list[float], y: list[float], r: list[float]) -> list[list[float]]:
    """Radii that fit exactly: first shrunk until nothing overlaps, then grown into what is left."""
    n = len(r)
    x, y = [min(max(v, 0.0), 1.0) for v in x], [min(max(v, 0.0), 1.0) for v in y]
    wall = [min(x[i], 1.0 - x[i], y[i], 1.0 - y[i]) for i in range(n)]
    r = [min(max(r[i], 0.0), wall[i]) for i in range(n)]
    for i in range(n):
        for j in range(i):
            distance = math.hypot(x[i] - x[j], y[i] - y[j])
            if r[i] + r[j] > distance:
                scale = distance / (r[i] + r[j])
                r[i], r[j] = r[i] * scale, r[j] * scale
    for i in sorted(range(n), key=lambda i: -r[i]):
        room = min(math.hypot(x[i] - x[j], y[i] - y[j]) - r[j] for j in range(n) if j != i)
        r[i] = max(0.0, min(room, wall[i]) - MARGIN)
    return [[x[i], y[i], r[i]] for i in range(n)]


def pack(n: int, params: dict[str, Any]) -> list[list[float]]:
    rng = random.Random(params["seed"])
    points = layout(n, params, rng)
    x = [point[0] + rng.gauss(0.0, params["jitter"]) for point in points]
    y = [point[1] + rng.gauss(0.0, params["jitter"]) for point in points]
    r = [0.0] * n
    for step in range(params["steps"]):
        growth = params["growth"] / math.sqrt(n) * (1.0 - step / params["steps"]) ** params["cooling"]
        r = [radius + growth for radius in r]
        if step % REFRESH == 0:
            pairs = near_pairs(x, y, r)
        push_apart(x, y, r, params["give"], pairs)
        push_inside(x, r, params["give"])
        push_inside(y, r, params["give"])
    return fit(x, y, r)


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    packings = {}
    for name, n in json.loads((inputs / "problem/instances.json").read_text()).items():
        packings[name] = pack(n, params)
        print(f"{name}: {sum(r for _, _, r in packings[name]):.6f}", flush=True)
    Path(os.environ["BLASTDOOR_OUT"], "packing.json").write_text(json.dumps(packings))


if __name__ == "__main__":
    main()
