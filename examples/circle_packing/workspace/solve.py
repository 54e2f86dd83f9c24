"""Packs circles into the unit square so that the sum of their radii is large: the candidate.

Circles start on a layout, all grow a little at every step, and push each other (and the walls) back where they overlap.
As the growth fades, the packing settles. It may be changed in any way, as long as it leaves packing.json.
"""

import json
import math
import os
import random
from pathlib import Path

MARGIN = 1e-12  # the judge calculates exactly: leave more room than a rounding error takes


def square(n, rows, rng):
    """Rows of equal length; the last one may have gaps."""
    columns = math.ceil(n / rows)
    return [((i % columns + 0.5) / columns, (i // columns + 0.5) / rows) for i in range(n)]


def hexagonal(n, rows, rng):
    """Rows of unequal length, so that circles of one row lie over the gaps of the next."""
    longer = n // rows + 1
    counts = [longer if row < n % rows else longer - 1 for row in range(rows)]
    counts = [count for count in counts[::2] + counts[1::2] if count]
    return [
        ((column + 0.5) / count, (row + 0.5) / len(counts)) for row, count in enumerate(counts) for column in range(count)
    ]


def rings(n, rows, rng):
    """Circles around the middle, further out the more there are."""
    points = []
    for i in range(n):
        angle = 2.399963 * i  # the golden angle: no two in a line
        reach = 0.45 * math.sqrt((i + 0.5) / n)
        points.append((0.5 + reach * math.cos(angle), 0.5 + reach * math.sin(angle)))
    return points


def scattered(n, rows, rng):
    return [(rng.random(), rng.random()) for _ in range(n)]


LAYOUTS = {"square": square, "hexagonal": hexagonal, "rings": rings, "scattered": scattered}


def relax(points, params):
    """Grow and push apart; returns centres and radii that almost fit."""
    n = len(points)
    x, y = [p[0] for p in points], [p[1] for p in points]
    r = [0.0] * n
    growth, give = params["growth"] / math.sqrt(n), params["give"]
    share = 0.5 / (1.0 + give)
    for step in range(params["steps"]):
        grow = growth * (1.0 - step / params["steps"]) ** params["cooling"]
        for i in range(n):
            r[i] += grow
        for i in range(n):
            for j in range(i):
                reach = r[i] + r[j]
                dx, dy = x[i] - x[j], y[i] - y[j]
                squared = dx * dx + dy * dy
                if squared < reach * reach:
                    distance = math.sqrt(squared) or 1e-9
                    overlap = (reach - distance) * share
                    dx, dy = dx * overlap / distance, dy * overlap / distance
                    x[i] += dx
                    y[i] += dy
                    x[j] -= dx
                    y[j] -= dy
                    r[i] -= overlap * give
                    r[j] -= overlap * give
            for place in (x, y):
                if place[i] < r[i]:
                    push = (r[i] - place[i]) * 2 * share
                    place[i] += push
                    r[i] -= push * give
                elif place[i] > 1.0 - r[i]:
                    push = (place[i] + r[i] - 1.0) * 2 * share
                    place[i] -= push
                    r[i] -= push * give
    return x, y, r


def fit(x, y, r):
    """Radii that fit exactly: first shrunk until nothing overlaps, then grown into what is left."""
    n = len(x)
    x, y = [min(max(v, 0.0), 1.0) for v in x], [min(max(v, 0.0), 1.0) for v in y]
    wall = [min(x[i], 1.0 - x[i], y[i], 1.0 - y[i]) for i in range(n)]
    r = [min(max(r[i], 0.0), wall[i]) for i in range(n)]
    for i in range(n):
        for j in range(i):
            distance = math.hypot(x[i] - x[j], y[i] - y[j])
            if r[i] + r[j] > distance:
                scale = distance / (r[i] + r[j])
                r[i] *= scale
                r[j] *= scale
    for i in sorted(range(n), key=lambda i: -r[i]):
        room = min(math.hypot(x[i] - x[j], y[i] - y[j]) - r[j] for j in range(n) if j != i)
        r[i] = max(0.0, min(room, wall[i]) - MARGIN)
    return [[x[i], y[i], r[i]] for i in range(n)]


def pack(n, params):
    rng = random.Random(params["seed"])
    jitter = params["jitter"]
    points = LAYOUTS[params["layout"]](n, params["rows"], rng)
    return fit(*relax([(x + rng.gauss(0, jitter), y + rng.gauss(0, jitter)) for x, y in points], params))


def main(inputs=Path("/inputs")):
    params = json.loads(Path("params.json").read_text())
    packings = {}
    for name, n in json.loads((inputs / "instances").read_text()).items():
        packings[name] = pack(n, params)
        print(f"{name}: {sum(r for _, _, r in packings[name]):.6f}", flush=True)
    Path(os.environ["BLASTDOOR_OUT"], "packing.json").write_text(json.dumps(packings))


if __name__ == "__main__":
    main()
