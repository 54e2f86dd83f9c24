"""Writes the data of this task, points on three spirals with noise: once, not in a trial. Python alone is enough.

    python make_data.py

Train has a label in each line, test has none: the labels of test are gold, in the judge's folder, which no candidate
ever sees. The seed is not a secret worth keeping, but it is no part of the inputs either.
"""

import csv
import math
import random
from pathlib import Path

HERE = Path(__file__).parent
SEED = 4181
CLASSES, TRAIN, TEST = 3, 220, 600
NOISE = 0.2


def point(draw: random.Random) -> tuple[str, str, int]:
    label, along = draw.randrange(CLASSES), draw.random()
    angle = 2 * math.pi * label / CLASSES + 4 * along + draw.gauss(0, NOISE)
    radius = 0.1 + 0.9 * along
    return f"{radius * math.cos(angle):.4f}", f"{radius * math.sin(angle):.4f}", label


def write(path: Path, rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    draw = random.Random(SEED)
    rows = [point(draw) for _ in range(TRAIN + TEST)]
    train, test = rows[:TRAIN], rows[TRAIN:]
    write(HERE / "inputs/train/points.csv", list(train))
    write(HERE / "inputs/test/points.csv", [(x, y) for x, y, _ in test])
    write(HERE / "judge/gold/labels.csv", [(label,) for _, _, label in test])


if __name__ == "__main__":
    main()
