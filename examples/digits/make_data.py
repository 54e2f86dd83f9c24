"""Writes the data of this task from scikit-learn's digits: once, where scikit-learn is installed, not in a trial.

    python make_data.py

The images are 8 by 8 pixels of 0 to 16. Rows are shuffled with a fixed seed and dealt out: train with labels, dev and
test without. The labels of dev and test are gold: they go to the judge's folder, which no candidate ever sees.
"""

import csv
import random
from pathlib import Path

from sklearn.datasets import load_digits

HERE = Path(__file__).parent
SEED = 2026
TRAIN, DEV = 500, 250


def write(path: Path, rows: list[list[int]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    digits = load_digits()
    rows = [[int(pixel) for pixel in image] for image in digits.data]
    order = random.Random(SEED).sample(range(len(rows)), len(rows))
    train, dev, test = order[:TRAIN], order[TRAIN : TRAIN + DEV], order[TRAIN + DEV :]
    write(HERE / "inputs/train/images.csv", [[*rows[i], int(digits.target[i])] for i in train])
    write(HERE / "inputs/dev/images.csv", [rows[i] for i in dev])
    write(HERE / "inputs/test/images.csv", [rows[i] for i in test])
    write(HERE / "judge/gold/dev_labels.csv", [[int(digits.target[i])] for i in dev])
    write(HERE / "judge/gold/labels.csv", [[int(digits.target[i])] for i in test])


if __name__ == "__main__":
    main()
