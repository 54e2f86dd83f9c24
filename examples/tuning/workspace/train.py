"""Trains a small network to tell three spirals apart and leaves predictions.csv: the candidate. Nothing but Python.

After each epoch it reports its loss on points that it did not learn from. Its runner may have enough of it then,
and says so with SIGTERM; by default that ends a program at once, and here there is nothing to flush.
"""

import csv
import json
import math
import os
import random
from itertools import pairwise
from pathlib import Path

CLASSES = 3
HELD_BACK = 50

Rows = list[tuple[list[float], int]]


class Network:
    """Points to `layers` hidden layers of `width`, tanh, to a share for each class."""

    def __init__(self, layers: int, width: int, draw: random.Random) -> None:
        sizes = [2, *[width] * layers, CLASSES]
        self.weights = [
            [[draw.gauss(0, 1 / math.sqrt(before)) for _ in range(before + 1)] for _ in range(after)]
            for before, after in pairwise(sizes)
        ]
        self.speed = [[[0.0] * len(row) for row in layer] for layer in self.weights]

    def run(self, point: list[float]) -> list[list[float]]:
        """What each layer says; the last are the shares."""
        said = [[*point, 1.0]]
        for number, layer in enumerate(self.weights):
            sums = [sum(w * x for w, x in zip(row, said[-1], strict=True)) for row in layer]
            if number < len(self.weights) - 1:
                said.append([*map(math.tanh, sums), 1.0])
            else:
                top = max(sums)
                shares = [math.exp(it - top) for it in sums]
                said.append([it / sum(shares) for it in shares])
        return said

    def learn(self, point: list[float], label: int, rate: float, momentum: float, decay: float) -> None:
        said = self.run(point)
        error = [share - (place == label) for place, share in enumerate(said[-1])]
        for number in range(len(self.weights) - 1, -1, -1):
            layer, speed, below = self.weights[number], self.speed[number], said[number]
            back = [sum(e * row[place] for e, row in zip(error, layer, strict=True)) for place in range(len(below) - 1)]
            for row, pace, e in zip(layer, speed, error, strict=True):
                for place, x in enumerate(below):
                    pace[place] = momentum * pace[place] - rate * (e * x + decay * row[place])
                    row[place] += pace[place]
            error = [it * (1 - x * x) for it, x in zip(back, below, strict=False)]

    def loss(self, rows: Rows) -> float:
        return -sum(math.log(max(self.run(point)[-1][label], 1e-9)) for point, label in rows) / len(rows)


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    draw = random.Random(0)
    rows: Rows = [([float(x), float(y)], int(label)) for x, y, label in read(inputs / "train/points.csv")]
    held, rows = rows[:HELD_BACK], rows[HELD_BACK:]
    network = Network(params["layers"], params["width"], draw)
    for epoch in range(1, params["epochs"] + 1):
        draw.shuffle(rows)
        try:
            for point, label in rows:
                network.learn(point, label, params["rate"], params["momentum"], params["decay"])
            loss = network.loss(held)
        except OverflowError:
            loss = math.inf
        if not math.isfinite(loss):
            raise SystemExit(f"it ran away in epoch {epoch}: the rate is too high")
        print("::report " + json.dumps({"step": epoch, "value": loss}), flush=True)
    shares = [network.run([float(x), float(y)])[-1] for x, y in read(inputs / "test/points.csv")]
    labels = "".join(f"{it.index(max(it))}\n" for it in shares)
    Path(os.environ["BLASTDOOR_OUT"], "predictions.csv").write_text(labels)


if __name__ == "__main__":
    main()
